LIB={}
for x in 'theme model draw tables widgets timeline panels app backend script'.split(): LIB[('viewer',x)]=x
for x in 'schema store analysis merge query report cli'.split(): LIB[('traces',x)]=x
LIB[('traces','import')]='importer'; LIB[('traces','export')]='exports'
for x in 'model plan sharding executor comm world job checkpoint data cli device'.split(): LIB[('trainer',x)]=x
LIB[('trainer','collective')]='collectives'
TESTNS_FORCE={'tests/viewer/timeline_gestures_test.cpp':'timeline'}
ORDER={'viewer':'theme draw model tables widgets timeline panels backend app script'.split(),
 'traces':'schema store analysis merge importer exports report query cli'.split(),
 'trainer':'job plan world collectives data model device sharding checkpoint comm executor cli'.split()}
for f,x in {'query_test':'query','sample_queries_test':'query','kineto_variants_test':'importer','time_invariants_test':'analysis','fuzz_corpus_test':'importer','rocpd_test':'importer','flight_test':'analysis','stopped_test':'analysis','late_rank_test':'analysis','hosts_test':'analysis','allocator_snapshot_test':'analysis','chrome_trace_test':'exports','nsight_exports_test':'store'}.items(): TESTNS_FORCE['tests/traces/%s.cpp'%f]=x
import os
TR={'job':'test_job test_job_checks test_job_errors test_launched test_learning_rate','data':'bench_data test_data test_data_bpe test_data_loader test_data_masked test_data_sampler',
'world':'test_world test_world_failure test_world_joining test_world_place','plan':'test_kernel_table','model':'test_gradients test_models','sharding':'test_wrap test_plan_strategies test_plan_schedule test_plan_memory',
'comm':'bench_collectives test_collective_failures test_collective_group','executor':'bench_schedule bench_tracing test_allocator test_cpu_kernels test_device_trace test_executor_runs test_local_group test_races test_scheduler','cli':'test_next_token test_rank_errors test_sweep'}
class _D(dict):
    def get(self,f,d=None):
        if f in self: return self[f]
        if f.startswith('tests/trainer/'): return ''
        return d
TESTNS_FORCE=_D(TESTNS_FORCE)
for x,l in TR.items():
    for f in l.split(): TESTNS_FORCE['tests/trainer/%s.cpp'%f]=x
