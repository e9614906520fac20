// Keys that exclude each other, names that stand for several keys, and defaults that follow another key.
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "trainer/job/job.h"

namespace shardscope::trainer::job {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& toml) {
    try {
        parse_job(toml, "job.toml");
    } catch (const JobError& error) {
        return error.what();
    }
    return "no error";
}

TEST(JobChecks, NameTheKeyAndWhatToDo) {
    struct Mistake {
        const char *toml, *begins, *says;
    };
    const std::string text = "[data]\ntype = 'text'\npath = 'x'\n";
    const Mistake strategies[] = {
        {"[run]\nranks = 4\n[fsdp]\nsharding_strategy = 'HYBRID_SHARD'\nshard_group = 3",
         "job.toml:5: fsdp.shard_group: ", "4 ranks cannot be cut into groups of 3"},
        {"[run]\nranks = 4\n[fsdp]\nsharding_strategy = 'HYBRID_SHARD'",
         "job.toml:4: fsdp.shard_group: ", "set it to a divisor of run.ranks"},
        {"[run]\nranks = 4\n[fsdp]\nshard_group = 2", "job.toml:4: fsdp.shard_group: ", "only HYBRID_SHARD"},
        {"[fsdp]\nsharding_strategy = 'NO_SHARD'\ncpu_offload = true",
         "job.toml:3: fsdp.cpu_offload: ", "NO_SHARD cannot be offloaded"},
        {"[fsdp]\nsharding_strategy = 'ZERO_1'\ncpu_offload = true",
         "job.toml:3: fsdp.cpu_offload: ", "use FULL_SHARD or SHARD_GRAD_OP"},
        {"[parallel]\nmode = 'ddp'\n[fsdp]\ncpu_offload = true",
         "job.toml:4: fsdp.cpu_offload: ", "set parallel.mode"},
        {"[memory]\noffload = 'gradients'", "job.toml:2: memory.offload: ", "use none, optimizer"},
        {"[memory]\noffload = 'optimizer+optimizer'", "job.toml:2: memory.offload: ", "use none, optimizer"},
        {"[memory]\noffload = 'optimizer+'", "job.toml:2: memory.offload: ", "use none, optimizer"},
        {"[fsdp]\ncpu_offload = true\n[memory]\noffload = 'activations+optimizer'",
         "job.toml:4: memory.offload: ", "on the host already"},
        {"[fsdp]\nsharding_strategy = 'NO_SHARD'\n[memory]\noffload = 'optimizer'",
         "job.toml:4: memory.offload: ", "use FULL_SHARD or SHARD_GRAD_OP"},
        {"[fsdp]\nsharding_strategy = 'ZERO_1'\n[memory]\noffload = 'optimizer'",
         "job.toml:4: memory.offload: ", "set parallel.mode to \"fsdp\""},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ngradient_as_bucket_view = true\n[memory]\noffload = 'optimizer'",
         "job.toml:6: memory.offload: ", "views of a bucket"},
        {"[parallel]\nmode = 'ddp'\n[optimizer]\ntype = 'onebit_adam'\nfreeze_step = 2\n[memory]\noffload = "
         "'optimizer'",
         "job.toml:7: memory.offload: ", "use \"adam\" or \"lamb\""},
        {"[memory]\nnvme = '/tmp'", "job.toml:2: memory.nvme: ", "set memory.offload to \"optimizer\""},
        {"[optimizer]\ntype = 'lamb'\n[memory]\nnvme = '/tmp'\noffload = 'optimizer'",
         "job.toml:4: memory.nvme: ", "use \"adamw\", \"adam\" or \"sgd\""},
        {"[ddp]\ncomm_hook = 'bf16'", "job.toml:2: ddp.comm_hook: ", "only \"ddp\" reduces buckets"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'fp8'",
         "job.toml:4: ddp.comm_hook: ", "use none, bf16, fp16, powersgd:R, topk:F"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'powersgd:0'",
         "job.toml:4: ddp.comm_hook: ", "where R is an integer from 1 to 1024"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'topk:1.5'",
         "job.toml:4: ddp.comm_hook: ", "where F is a number from 1e-06 to 1"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'bf16:2'",
         "job.toml:4: ddp.comm_hook: ", "takes no number"},
        {"[run]\ndevice = 'cuda'\n[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'topk:0.1'",
         "job.toml:6: ddp.comm_hook: ", "topk has no kernels for a GPU"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'topk:0.1'\n[train]\naccumulation = 2",
         "job.toml:4: ddp.comm_hook: ", "set train.accumulation_sync to false"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'bf16'\ncomm_hook_start = 3",
         "job.toml:5: ddp.comm_hook_start: ", "only powersgd and topk"},
        {"[run]\nsteps = 9\n[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'topk:0.1'\ncomm_hook_start = 9",
         "job.toml:7: ddp.comm_hook_start: ", "the first 9 steps are reduced whole, and the run has 9"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'bf16'\northogonalization_epsilon = 1e-8",
         "job.toml:5: ddp.orthogonalization_epsilon: ", "only powersgd"},
        {"[optimizer]\ntype = 'adam'\nfreeze_step = 3",
         "job.toml:3: optimizer.freeze_step: ", "only onebit_adam and onebit_lamb"},
        {"[optimizer]\ntype = 'onebit_adam'\nfreeze_step = 3",
         "job.toml:2: parallel.mode: ", "replace the all-reduce of \"ddp\""},
        {"[parallel]\nmode = 'ddp'\n[optimizer]\ntype = 'onebit_adam'",
         "job.toml:4: optimizer.freeze_step: ", "a fifth of run.steps"},
        {"[run]\ndevice = 'cuda'\n[parallel]\nmode = 'ddp'\n[optimizer]\ntype = 'onebit_lamb'\nfreeze_step = "
         "3",
         "job.toml:2: run.device: ", "no kernels for a GPU"},
        {"[parallel]\nmode = 'ddp'\n[train]\nclip_norm = 1\n[optimizer]\ntype = 'onebit_adam'\nfreeze_step = "
         "3",
         "job.toml:4: train.clip_norm: ", "never see the mean of all gradients"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\ncomm_hook = 'bf16'\n[optimizer]\ntype = "
         "'onebit_adam'\nfreeze_step = 3",
         "job.toml:4: ddp.comm_hook: ", "omit one of the two"},
        {"[parallel]\nmode = 'ddp'\n[ddp]\nshard_optimizer = true\n[optimizer]\ntype = "
         "'onebit_adam'\nfreeze_step = "
         "3",
         "job.toml:4: ddp.shard_optimizer: ", "the whole momentum"},
        {"[run]\nranks = 2\n[parallel]\nmode = 'ddp'\ntensor = 2\n[optimizer]\ntype = "
         "'onebit_adam'\nfreeze_step = 3",
         "job.toml:5: parallel.tensor: ", "set the key to 1"},
        {"[train]\nstaleness = 2", "job.toml:2: train.staleness: ", "set parallel.mode to \"server\""},
        {"[parallel]\nservers = 2", "job.toml:2: parallel.servers: ", "only a parameter server"},
        {"[parallel]\nmode = 'server'\n[train]\nstaleness = -2", "job.toml:4: train.staleness: ", "-1"},
        {"[parallel]\nmode = 'server'", "job.toml:2: run.ranks: ", "has workers, too"},
        {"[run]\nranks = 3\ndevice = 'cuda'\n[parallel]\nmode = 'server'",
         "job.toml:3: run.device: ", "no streams on a GPU"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'server'\ntensor = 2",
         "job.toml:5: parallel.tensor: ", "workers with the whole model on each rank"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'server'\n[train]\nclip_norm = 1",
         "job.toml:6: train.clip_norm: ", "no norm of all"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'server'\n[train]\nstaleness = 1\n[optimizer]\ntype = 'lamb'",
         "job.toml:8: optimizer.type: ", "only alone and in step"},
        {"[run]\nranks = 4\n[parallel]\nmode = 'server'\n[memory]\noffload = 'optimizer'",
         "job.toml:6: memory.offload: ", "without an optimizer"},
        {"[parallel]\nmode = 'ddp'\n[train]\nlocal_steps = 4\n[memory]\noffload = 'optimizer'",
         "job.toml:6: memory.offload: ", "where the optimizer is"},
        {"[train]\nouter_lr = 0.7", "job.toml:2: train.outer_lr: ", "set train.local_steps"},
        {"[train]\nlocal_steps = 4", "job.toml:2: parallel.mode: ", "replace the all-reduce of \"ddp\""},
        {"[parallel]\nmode = 'ddp'\n[train]\nlocal_steps = 4\nclip_norm = 1",
         "job.toml:5: train.clip_norm: ", "as many gradients as ranks"},
        {"[parallel]\nmode = 'ddp'\n[train]\nlocal_steps = 4\n[ddp]\ncomm_hook = 'bf16'",
         "job.toml:6: ddp.comm_hook: ", "omit one of the two"},
        {"[parallel]\nmode = 'ddp'\n[train]\nlocal_steps = 4\n[ddp]\nshard_optimizer = true",
         "job.toml:6: ddp.shard_optimizer: ", "the whole optimizer"},
        {"[run]\nranks = 2\n[parallel]\nmode = 'ddp'\ntensor = 2\n[train]\nlocal_steps = 4",
         "job.toml:5: parallel.tensor: ", "set the key to 1"},
        {"[fsdp]\nsharding_strategy = 'NO_SHARD'\nlayout = 'lean'", "job.toml:3: fsdp.layout: ", "fsdp1"},
        {"[fsdp]\nlayout = 'fsdp2'\nlimit_all_gathers = true",
         "job.toml:3: fsdp.limit_all_gathers: ", "fully_shard has no limiter"},
        {"[parallel]\nmode = 'ddp'\n[precision]\nparam = 'bf16'",
         "job.toml:4: precision.param: ", "needs the fp32 shards"},
        {"[parallel]\nmode = 'ddp'\n[precision]\nparam = 'fp16'",
         "job.toml:4: precision.param: ", "\"fp16\" needs the fp32 shards"},
        {"[model]\nname = 'resnet50'\n[data]\ntype = 'images'\n[precision]\nparam = 'fp16'",
         "job.toml:6: precision.param: ", "compute in fp32"},
        {"[precision]\nparam = 'fp16'\nreduce = 'bf16'", "job.toml:2: precision.param: ", "are not mixed"},
        {"[precision]\nloss_scale = 1024",
         "job.toml:2: precision.loss_scale: ", "only gradients in fp16 are scaled"},
        {"[precision]\nparam = 'bf16'\ngrowth_interval = 10",
         "job.toml:3: precision.growth_interval: ", "only gradients in fp16 are scaled"},
        {"[precision]\nparam = 'fp16'\nloss_scale = 8\ninitial_scale = 16",
         "job.toml:4: precision.initial_scale: ", "precision.loss_scale is constant"},
        {"[precision]\nparam = 'fp16'\nhysteresis = 3",
         "job.toml:3: precision.hysteresis: ", "the rule of torch has none"},
        {"[precision]\nparam = 'fp16'\nscale_rule = 'deepspeed'\nmin_scale = 1e6",
         "job.toml:4: precision.min_scale: ", "above precision.initial_scale"},
        {"[optimizer]\ntype = 'adam'\nnesterov = true", "job.toml:3: optimizer.nesterov: ", "sgd and lars"},
        {"[optimizer]\ntype = 'novograd'\nmomentum = 0.9",
         "job.toml:3: optimizer.momentum: ", "only sgd and lars have it"},
        {"[optimizer]\ntrust_coefficient = 0.1", "job.toml:2: optimizer.trust_coefficient: ", "only lars"},
        {"[optimizer]\nnesterov = true", "job.toml:2: optimizer.nesterov: ", "momentum above 0"},
        {"[optimizer]\nschedule = 'step'", "job.toml:2: optimizer.schedule: ", "optimizer.milestones"},
        {"[optimizer]\nmilestones = [3]", "job.toml:2: optimizer.milestones: ", "schedule \"step\""},
        {"[optimizer]\npower = 1", "job.toml:2: optimizer.power: ", "schedule \"polynomial\""},
        {"[optimizer]\nwarmup = 'constant'", "job.toml:2: optimizer.warmup: ", "lr_scaling"},
        {"[optimizer]\nlr_batch = 256", "job.toml:2: optimizer.lr_batch: ", "lr_scaling"},
        {"[checkpoint]\nevery = 5", "job.toml:2: checkpoint.every: ", "no folder to save in"},
        {"[checkpoint]\nload = 'a'\ninitial_load = 'b'",
         "job.toml:3: checkpoint.initial_load: ", "omit one of the two"},
        {"[checkpoint]\nnames = 'huggingface'",
         "job.toml:2: checkpoint.names: ", "only a gpt, llama or bert"},
        {"[model]\ntype = 'gpt'\n[data]\ntype = 'text'\npath = 'x'\n[checkpoint]\nnames = 'huggingface'",
         "job.toml:7: checkpoint.names: ", "set checkpoint.format to \"safetensors\""},
        {"[checkpoint]\nkeep = 'last:2'", "job.toml:2: checkpoint.keep: ", "set checkpoint.save"},
        {"[checkpoint]\nsave = 'a'\nkeep = 'best'", "job.toml:3: checkpoint.keep: ", "set data.validation"},
        {"[checkpoint]\nsave = 'a'\nkeep = 'last:0'", "job.toml:3: checkpoint.keep: ", "last:N"},
        {"[train]\ngradient_norm = true\nclip_norm = 1.0",
         "job.toml:2: train.gradient_norm: ", "recorded anyway"},
        {"[run]\nsteps = 5\n[train]\nepochs = 2", "job.toml:4: train.epochs: ", "omit one of the two keys"},
        {"[train]\nepochs = 2", "job.toml:2: train.epochs: ", "do not repeat, so there are no epochs"},
        {"[checkpoint]\nsave = 'a'\nevery = '1 epoch'", "job.toml:3: checkpoint.every: ", "no epochs"},
        {"[checkpoint]\nsave = 'a'\nevery = '1 week'",
         "job.toml:3: checkpoint.every: ", "use 0 to 1000000000, or \"1 epoch\""},
        {"[checkpoint]\nsave = 'a'\nevery = '0 epochs'", "job.toml:3: checkpoint.every: ", "1 epoch"},
        {"[checkpoint]\nsave = 'a'\nevery = -1", "job.toml:3: checkpoint.every: ", "\"-1\" is not a number"},
        {"[checkpoint]\nsave = 'a'\nevery = 1.5",
         "job.toml:3: checkpoint.every: ", "expected an integer or a text, found the number 1.5"},
        {"[data]\ntest = 0.1", "job.toml:2: data.test: ", "\"text\""},
        {"[data]\ntest_path = 'a'", "job.toml:2: data.test_path: ", "only networks for images"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\npath = 'a'\ntest = 0.1\ntest_path = 'b'",
         "job.toml:6: data.test: ", "omit one of the two keys"},
        {"[train]\nvalidate_every = 5", "job.toml:2: train.validate_every: ", "data.validation"},
        {"[data]\nvalidation = 0.1", "job.toml:2: data.validation: ", "\"text\""},
        {"[model]\ndropout = 0.1", "job.toml:2: model.dropout: ", "an mlp has none"},
        {"[data]\ntype = 'images'", "job.toml:2: data.type: ", "an mlp does not read images"},
        {"[data]\nimage = 32", "job.toml:2: data.image: ", "only networks for images have it"},
        {"[ddp]\nbroadcast_buffers = false",
         "job.toml:2: ddp.broadcast_buffers: ", "only networks for images"},
        {"[train]\nlabel_smoothing = 0.1", "job.toml:2: train.label_smoothing: ", "only networks for images"},
        {"[data]\nflip = true", "job.toml:2: data.flip: ", "only networks for images"},
        {"[data]\nstd = [1, 1, 1]", "job.toml:2: data.std: ", "only networks for images"},
        {"[parallel]\nsync_batch_norm = true",
         "job.toml:2: parallel.sync_batch_norm: ", "only networks for images"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\n[parallel]\nmode = 'none'\nsync_batch_norm = "
         "true",
         "job.toml:7: parallel.sync_batch_norm: ", "one rank has all images"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\nvalidation = 0.1",
         "job.toml:5: data.validation: ", "generated images are endless"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\ncrop = 'random'",
         "job.toml:5: data.crop: ", "generated images are ready for the model"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\ncache = 8",
         "job.toml:5: data.cache: ", "generated images are ready for the model"},
        {"[data]\ncache = 8", "job.toml:2: data.cache: ", "only networks for images"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\npath = 'a'\npadding = 4",
         "job.toml:6: data.padding: ", "set data.crop to \"random\""},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\npath = 'a'\nresize = 100",
         "job.toml:6: data.resize: ", "a side of 100 pixels has no part of 224"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\npath = 'a'\ncrop = 'resized'\nresize = 256",
         "job.toml:7: data.resize: ", "nothing is validated or tested"},
        {"[model]\nname = 'resnet18'\n[data]\ntype = 'images'\npath = 'a'\nvalidation = 0.1\nvalidation_path "
         "= 'b'",
         "job.toml:6: data.validation: ", "omit one of the two keys"},
        {"[model]\ntype = 'vit'\n[data]\ntype = 'images'",
         "job.toml:2: model.type: ", "a vit is one of the published shapes; set model.name to \"vit_b_16\""},
        {"[model]\nname = 'vgg16'", "job.toml:2: data.type: ", "a vgg trains on \"images\""},
        {"[model]\nname = 'vgg16'\nheads = 2\n[data]\ntype = 'images'",
         "job.toml:3: model.heads: ", "a vgg has none to choose"},
        {"[model]\nname = 'vit_b_16'\nheads = 7\n[data]\ntype = 'images'",
         "job.toml:3: model.heads: ", "7 heads do not divide model.width 768"},
        {"[model]\nname = 'vit_b_16'\n[data]\ntype = 'images'\n[parallel]\nsync_batch_norm = true",
         "job.toml:6: parallel.sync_batch_norm: ", "a vit has no batch norms"},
        {"[model]\nname = 'vgg16'\n[data]\ntype = 'images'\n[parallel]\nmode = "
         "'ddp'\n[ddp]\nbroadcast_buffers = "
         "false",
         "job.toml:8: ddp.broadcast_buffers: ", "a vgg has no buffers"},
        {"[run]\nranks = 2\n[model]\nname = 'vit_b_16'\n[data]\ntype = 'images'\n[parallel]\ntensor = 2",
         "job.toml:8: parallel.tensor: ", "a vit is not divided among ranks this way"},
        {"[model]\ntype = 'resnet'\n[data]\ntype = 'images'",
         "job.toml:2: model.type: ", "set model.name to"},
        {"[model]\nname = 'resnet50'", "job.toml:2: data.type: ", "set data.type to \"images\""},
        {"[model]\nname = 'resnet50'\nlayers = 3\n[data]\ntype = 'images'",
         "job.toml:3: model.layers: ", "omit"},
        {"[run]\nranks = 2\n[model]\nname = 'resnet50'\n[data]\ntype = 'images'\n[parallel]\npipeline = 2",
         "job.toml:8: parallel.pipeline: ", "set the key to 1"},
        {"[run]\ndevice = 'cuda'\n[model]\nname = 'vit_b_16'\nattention = 'fused'\n[data]\ntype = 'images'",
         "job.toml:5: model.attention: ", "a vit is bidirectional"},
        {"[model]\nname = 'resnet50'\n[data]\ntype = 'images'\n[precision]\nparam = 'bf16'",
         "job.toml:6: precision.param: ", "compute in fp32"},
        {"[model]\nname = 'resnet50'\n[data]\ntype = 'images'\n[precision]\nbuffer = 'bf16'",
         "job.toml:6: precision.buffer: ", "compute in fp32"},
        {"[model]\nname = 'resnet50'\n[data]\ntype = 'images'\n[ddp]\nbroadcast_buffers = false",
         "job.toml:6: ddp.broadcast_buffers: ", "only ddp broadcasts"},
        {"[model]\nattention = 'fused'", "job.toml:2: model.attention: ", "an mlp has none"},
    };
    for (const Mistake& m : strategies)
        EXPECT_THAT(error_of(m.toml), AllOf(StartsWith(m.begins), HasSubstr(m.says)));
    EXPECT_THAT(error_of("[model]\ntype = 'llama'\nheads = 4\nkv_heads = 3\n" + text),
                AllOf(StartsWith("job.toml:4: model.kv_heads: "), HasSubstr("do not divide")));
    EXPECT_THAT(error_of("[model]\ntype = 'llama'\nheads = 4\nwidth = 12\n" + text),
                AllOf(StartsWith("job.toml:4: model.width: "), HasSubstr("cannot be rotated in pairs")));
    EXPECT_THAT(error_of("[model]\ntype = 'llama'\nactivation = 'relu'\n" + text),
                AllOf(StartsWith("job.toml:3: model.activation: "), HasSubstr("SwiGLU")));
    EXPECT_THAT(error_of("[model]\nactivation = 'squared_relu'\nfused_activation = true"),
                AllOf(StartsWith("job.toml:3: model.fused_activation: "), HasSubstr("squared_relu")));
    EXPECT_THAT(error_of("[model]\nactivation = 'tanh'"),
                AllOf(StartsWith("job.toml:2: model.activation: "), HasSubstr("gelu")));
    EXPECT_THAT(error_of("[model]\ntype = 'llama'\nfused_activation = true\n" + text),
                AllOf(StartsWith("job.toml:3: model.fused_activation: "), HasSubstr("omit the key")));
    EXPECT_THAT(error_of("[model]\ntype = 'gpt'\nvocabulary = 100\n" + text),
                AllOf(StartsWith("job.toml:3: model.vocabulary: "), HasSubstr("less than the 256 bytes")));
}

TEST(JobChecks, OfExperts) {
    const std::string text = "[data]\ntype = 'text'\npath = 'x'\n", gpt = "[model]\ntype = 'gpt'\n";
    EXPECT_THAT(
        error_of(gpt + "experts = 4\nexperts_per_token = 5\n" + text),
        StartsWith("job.toml:4: model.experts_per_token: a token cannot use 5 of 4 experts; the nearest "
                   "number that works is 4"));
    for (const std::string key : {"experts_per_token = 2", "capacity_factor = 1.5", "balance_loss = 0.01"}) {
        EXPECT_THAT(error_of(gpt + key + "\n" + text),
                    AllOf(StartsWith("job.toml:3: model." + key.substr(0, key.find(' ')) + ": "),
                          HasSubstr("there are no experts; set model.experts")));
    }
    EXPECT_THAT(
        error_of("[model]\nexperts = 4"),
        StartsWith("job.toml:2: model.experts: an mlp has none; set model.type to \"gpt\" or \"llama\""));
    EXPECT_THAT(error_of("[model]\ntype = 'bert'\nexperts = 4\n" + text),
                StartsWith("job.toml:3: model.experts: a bert has none"));
    EXPECT_THAT(
        error_of(gpt + "experts = 4\nfused_activation = true\n" + text),
        StartsWith("job.toml:4: model.fused_activation: the matmuls of experts compute no activation"));
    EXPECT_EQ(parse_job(gpt + "experts = 4\nexperts_per_token = 4\n" + text, "job.toml").model.experts, 4);
}

TEST(JobChecks, OfExpertGroups) {
    const auto of = [](const std::string& ranks, const std::string& experts, const std::string& more = "") {
        return error_of("[run]\nranks = " + ranks + "\n[model]\ntype = 'gpt'\nexperts = " + experts +
                        "\n[parallel]\nexpert = 4\n" + more + "\n[data]\ntype = 'text'\npath = 'x'\n");
    };
    EXPECT_EQ(of("8", "8"), "no error");
    EXPECT_THAT(of("8", "6"),
                StartsWith("job.toml:7: parallel.expert: 6 experts cannot be divided among 4 ranks; "
                           "the nearest number of ranks that works is 2"));
    EXPECT_THAT(of("6", "8"),
                StartsWith("job.toml:7: parallel.expert: 6 ranks that have other tokens cannot "
                           "be cut into groups of 4; the nearest number of ranks that works is 2"));
    EXPECT_THAT(of("8", "8", "tensor = 4"), HasSubstr("2 ranks that have other tokens"));
    EXPECT_THAT(of("8", "8", "[fsdp]\nsharding_strategy = 'HYBRID_SHARD'\nshard_group = 2"),
                HasSubstr("2 ranks of a shard group cannot be cut into groups of 4"));
    EXPECT_THAT(of("8", "8", "mode = 'ddp'\n[ddp]\nshard_optimizer = true"),
                StartsWith("job.toml:7: parallel.expert: a sharded optimizer keeps"));
    EXPECT_THAT(of("8", "8", "[optimizer]\ntype = 'lamb'"),
                StartsWith("job.toml:9: optimizer.type: lars, lamb and novograd need the norm"));
    EXPECT_THAT(error_of("[run]\nranks = 2\n[parallel]\nexpert = 2"),
                StartsWith("job.toml:4: parallel.expert: there are no experts; set model.experts"));
}

std::string with_parallel(const std::string& keys, const std::string& model = "type = 'gpt'", int ranks = 8) {
    return "[run]\nranks = " + std::to_string(ranks) + "\n[data]\ntype = 'text'\npath = 'x'\n[model]\n" +
           model + "\n[parallel]\n" + keys;
}

TEST(JobChecks, OfAContextGroup) {
    const auto refused = [](const std::string& keys, const std::string& model = "type = 'gpt'") {
        return error_of(with_parallel(keys, model));
    };
    EXPECT_EQ(refused("context = 2"), "no error");
    EXPECT_EQ(refused("context = 2\ncontext_exchange = 'ring'"), "no error");
    EXPECT_THAT(refused("context_exchange = 'ring'"),
                AllOf(StartsWith("job.toml:9: parallel.context_exchange: "),
                      HasSubstr("set parallel.context above")));
    EXPECT_EQ(
        refused("context = 3"),
        "job.toml:9: parallel.context: 8 ranks cannot be cut into context groups of 3; the nearest number "
        "of ranks that works is 2");
    EXPECT_EQ(
        refused("tensor = 2\ncontext = 8"),
        "job.toml:10: parallel.context: 8 ranks in tensor groups of 2 cannot be cut into context groups of "
        "8; the nearest number of ranks that works is 4");
    EXPECT_EQ(refused("context = 4\npipeline = 4"),
              "job.toml:10: parallel.pipeline: 8 ranks in context groups of 4 cannot be "
              "cut into 4 places of a pipeline; the nearest number of places that works is 2");
    EXPECT_EQ(
        refused("context = 4", "type = 'gpt'\ncontext = 20"),
        "job.toml:10: parallel.context: 20 tokens cannot be cut into 8 chunks, two for each of 4 ranks; "
        "the nearest number of ranks that works is 2");
    EXPECT_EQ(
        refused("context = 8", "type = 'bert'\ncontext = 20"),
        "job.toml:10: parallel.context: 20 tokens cannot be cut into 8 chunks; the nearest number of ranks "
        "that works is 4");
    EXPECT_THAT(refused("context = 2", "type = 'gpt'\nattention = 'plain'"),
                AllOf(StartsWith("job.toml:8: model.attention: "), HasSubstr("set it to \"fused\"")));
    EXPECT_EQ(refused("context = 8\nexpert = 4", "type = 'gpt'\nexperts = 4\nbalance_loss = 0.1"),
              "no error");
    EXPECT_THAT(refused("context = 8\nmode = 'none'"),
                AllOf(StartsWith("job.toml:10: parallel.mode: "), HasSubstr("add up their gradients")));
    EXPECT_THAT(error_of("[run]\nranks = 2\n[parallel]\ncontext = 2"),
                AllOf(StartsWith("job.toml:4: parallel.context: "), HasSubstr("an mlp has no tokens")));
}

TEST(JobChecks, OfTheOrderOfTheAxes) {
    const auto order_of = [](const std::string& text) {
        return to_text(parse_job(with_parallel("tensor = 2\ncontext = 2\norder = '" + text + "'"), "job.toml")
                           .parallel.order);
    };
    EXPECT_EQ(to_text(Job().parallel.order), "pp-dp-cp-ep-tp");
    EXPECT_EQ(order_of("dp-pp-tp-cp"), "dp-pp-tp-cp-ep");
    EXPECT_EQ(order_of("tp-cp-pp-dp-ep"), "tp-cp-pp-dp-ep");
    const auto says = [](const std::string& order, const std::string& instead) {
        return AllOf(
            StartsWith("job.toml:10: parallel.order: \"" + order + "\" is not an order of pp, dp, cp, ep"),
            HasSubstr("use \"" + instead + "\""));
    };
    const auto refused = [](const std::string& order) {
        return error_of(with_parallel("tensor = 2\norder = '" + order + "'"));
    };
    for (const auto& [order, instead] :
         {std::pair("pp-dp-tp", "pp-dp-cp-ep-tp"), std::pair("tp-dp-tp-cp-pp", "tp-dp-cp-ep-pp"),
          std::pair("ep-dp-cp-tp-pp", "dp-cp-ep-tp-pp"), std::pair("dp-cp-tp-pp-xp", "dp-cp-ep-tp-pp"),
          std::pair("", "pp-dp-cp-ep-tp")})
        EXPECT_THAT(refused(order), says(order, instead));
    EXPECT_THAT(error_of(with_parallel("order = 'tp-dp-cp-pp'")),
                AllOf(StartsWith("job.toml:9: parallel.order: "), HasSubstr("nothing to order")));
}

// The CPU's figures are unchanged; a GPU's kernels support heads of up to 256 features.
TEST(JobChecks, AttentionFollowsTheDeviceAndTheWidthOfAHead) {
    const auto kind = [](const std::string& device, const std::string& attention, int width) {
        return parse_job("[run]\ndevice = '" + device +
                             "'\n[model]\ntype = 'gpt'\nheads = 1\nwidth = " + std::to_string(width) +
                             "\nattention = '" + attention + "'\n[data]\ntype = 'text'\npath = 'x'\n",
                         "job.toml")
            .model.attention;
    };
    EXPECT_EQ(kind("cpu", "auto", 64), AttentionKind::plain);
    EXPECT_EQ(kind("cuda", "auto", 64), AttentionKind::fused);
    EXPECT_EQ(kind("cuda", "auto", 257), AttentionKind::plain);
    EXPECT_EQ(kind("cuda", "plain", 64), AttentionKind::plain);
    EXPECT_EQ(kind("cpu", "fused", 256), AttentionKind::fused);
    EXPECT_THAT(error_of("[model]\ntype = 'gpt'\nheads = 2\nwidth = 514\nattention = 'fused'\n[data]\ntype = "
                         "'text'\npath = 'x'\n"),
                AllOf(StartsWith("job.toml:5: model.attention: "), HasSubstr("up to 256 features, not 257")));
}

// A simulation has as many ranks as requested, opens no data, and knows its cluster only later.
TEST(JobChecks, OfASimulation) {
    const auto of = [](const std::string& toml) {
        return parse_job("[run]\ndevice = 'sim'\n" + toml, "job.toml");
    };
    EXPECT_EQ(of("ranks = 65536").run.ranks, 65536);
    EXPECT_EQ(of("ranks = 8\n[sim]\nslow_rank = '3:1.5,7:2'").sim.slow_ranks,
              (std::vector<SlowRank>{{3, 1.5}, {7, 2}}));
    EXPECT_EQ(of("[sim]\nslow_link = 'inter:0.5,intra@2:0.25'").sim.slow_links,
              (std::vector<SlowLink>{{true, -1, 0.5}, {false, 2, 0.25}}));
    const Job gpt = of("[model]\ntype = 'gpt'\n[data]\ntype = 'text'");
    EXPECT_EQ(gpt.model.attention, AttentionKind::automatic);
    EXPECT_EQ(automatic_attention(gpt.model, true), AttentionKind::fused);
    EXPECT_EQ(automatic_attention(gpt.model, false), AttentionKind::plain);

    const std::string sim = "[run]\ndevice = 'sim'\nranks = 4\n";
    EXPECT_THAT(error_of(sim + "comm = 'local'"), StartsWith("job.toml:4: run.comm: the cost model decides"));
    EXPECT_THAT(error_of(sim + "processes = 4"),
                StartsWith("job.toml:4: run.processes: simulated ranks are not"));
    EXPECT_THAT(error_of(sim + "ranks_per_device = 3"),
                StartsWith("job.toml:4: run.ranks_per_device: 4 ranks cannot be divided among devices of 3"));
    EXPECT_THAT(error_of(sim + "ranks_per_device = 0"), HasSubstr("use 1 to 1024"));
    EXPECT_EQ(parse_job(sim + "ranks_per_device = 2", "job.toml").run.ranks_per_device, 2);
    EXPECT_THAT(error_of(sim + "[sim]\nslow_rank = '4:2'"),
                StartsWith("job.toml:5: sim.slow_rank: there is no rank 4; use 0 to 3"));
    for (const std::string wrong : {"3", "3:0", "x:2", "3:2x", "-1:2", "3:2,"})
        EXPECT_THAT(error_of(sim + "[sim]\nslow_rank = '" + wrong + "'"), HasSubstr("is not a slowed rank"))
            << wrong;
    for (const std::string wrong : {"inter", "outer:0.5", "inter:2", "inter@:0.5", "inter@x:0.5"})
        EXPECT_THAT(error_of(sim + "[sim]\nslow_link = '" + wrong + "'"), HasSubstr("is not a slowed link"))
            << wrong;
}

TEST(JobChecks, RanksShareADeviceWhereSomethingCanConnectThem) {
    const auto with = [](const std::string& more) {
        return error_of("[run]\nranks = 4\nranks_per_device = 2\n" + more);
    };
    EXPECT_THAT(with(""), HasSubstr("run.ranks_per_device: ranks that are threads share all cores"));
    EXPECT_EQ(with("processes = 4"), "no error");
    EXPECT_THAT(with("processes = 4\nworkers = 2"),
                HasSubstr("run.workers also says on how many cores a process works"));
    EXPECT_EQ(with("device = 'cuda'"), "no error");
    EXPECT_EQ(with("device = 'cuda'\ncomm = 'local'"), "no error");
    for (const std::string nccl : {"comm = 'nccl'", "processes = 4"})
        EXPECT_THAT(with("device = 'cuda'\n" + nccl),
                    HasSubstr("NCCL, which connects processes, refuses two"));
}

TEST(JobChecks, ZeroStagesAreNamesOfStrategies) {
    const auto with = [](const std::string& name) {
        return parse_job("[run]\nranks = 2\n[fsdp]\nsharding_strategy = '" + name + "'", "job.toml");
    };
    EXPECT_EQ(with("ZERO_3").fsdp.sharding_strategy, ShardingStrategy::full_shard);
    EXPECT_EQ(with("ZERO_2").fsdp.sharding_strategy, ShardingStrategy::shard_grad_op);
    const Job one = with("ZERO_1");
    EXPECT_EQ(one.parallel.mode, ParallelMode::ddp);
    EXPECT_TRUE(one.ddp.shard_optimizer);
}

TEST(JobChecks, DefaultsFollowOtherKeys) {
    const auto of = [](const std::string& toml) { return parse_job(toml, "job.toml"); };
    EXPECT_EQ(of("[precision]\nparam = 'bf16'").precision.reduce, Precision::bf16);
    EXPECT_EQ(of("[precision]\nparam = 'bf16'\nreduce = 'fp32'").precision.reduce, Precision::fp32);
    EXPECT_EQ(of("[precision]\nparam = 'fp16'").precision.buffer, Precision::fp16);
    EXPECT_EQ(of("[precision]\nparam = 'fp16'").precision.growth_interval, 2000);
    EXPECT_EQ(of("[precision]\nparam = 'fp16'\nscale_rule = 'deepspeed'").precision.growth_interval, 1000);
    EXPECT_EQ(of("[optimizer]\ntype = 'lamb'").optimizer.eps, 1e-6);
    EXPECT_EQ(of("[optimizer]\ntype = 'lamb'").optimizer.weight_decay, 0.01);
    EXPECT_EQ(of("[optimizer]\ntype = 'lars'").optimizer.momentum, 0.9);
    EXPECT_EQ(of("[optimizer]\ntype = 'novograd'").optimizer.betas, (std::array{0.95, 0.98}));
    EXPECT_EQ(of("[optimizer]\ntype = 'adam'").optimizer.weight_decay, 0.0);
    EXPECT_FALSE(of("[fsdp]\nlayout = 'fsdp2'").fsdp.limit_all_gathers);
    EXPECT_TRUE(of("[fsdp]\nlayout = 'lean'").fsdp.limit_all_gathers);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::job
