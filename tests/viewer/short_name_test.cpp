// Function names in limited space: their forms, from the longest to the shortest.
#include "viewer/draw/short_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer::draw {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> forms(std::string_view name) {
    return short_name(name).forms;
}

TEST(ShortName, LosesParametersThenNamespacesThenArgumentsOfArguments) {
    EXPECT_THAT(
        forms(
            "void at::native::fill_kernel<4, at::Add<c10::Half>, at::Array<char*, 2> >(int, at::Add<float>)"),
        ElementsAre("at::native::fill_kernel<4, at::Add<c10::Half>, at::Array<char*, 2> >",
                    "fill_kernel<4, Add<Half>, Array<char*, 2> >", "fill_kernel<4, Add<...>, Array<...> >"));
}

TEST(ShortName, ThirdLevelArgumentsGoBeforeTheSecond) {
    EXPECT_THAT(forms("f<aaaaaa<bbbbbb<cccccc<dddddd>>>>(int)"),
                ElementsAre("f<aaaaaa<bbbbbb<cccccc<dddddd>>>>", "f<aaaaaa<bbbbbb<...>>>", "f<aaaaaa<...>>"));
}

TEST(ShortName, TheFunctionStaysWhenItsArgumentsAreShortened) {
    const ShortName name = short_name("void cutlass::Kernel2<cutlass_80_tensorop_gemm_128x64>(Params)");
    EXPECT_EQ(name.head, "Kernel2<");
    EXPECT_EQ(name.inner, "cutlass_80_tensorop_gemm_128x64");
    EXPECT_EQ(name.tail, ">");
}

TEST(ShortName, ALambdaIsNamedAfterItsFunction) {
    EXPECT_THAT(
        forms("void k<4, at::cos_kernel(at::It&)::{lambda()#2}::operator()() const::{lambda(float)#1}, "
              "A<char*, 2> >(int)"),
        ElementsAre("k<4, at::cos_kernel(at::It&)::{lambda()#2}::operator()() const::{lambda(float)#1}, "
                    "A<char*, 2> >",
                    "k<4, at::cos_kernel, A<char*, 2> >", "k<4, cos_kernel, A<char*, 2> >",
                    "k<4, cos_kernel, A<...> >"));
}

TEST(ShortName, ThePointersOfAFunctionAreItsParameters) {
    EXPECT_THAT(forms("ncclKernel_AllReduce_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"),
                ElementsAre("ncclKernel_AllReduce_RING_LL"));
}

TEST(ShortName, TypesOfNumbersAreLeftOut) {
    EXPECT_THAT(forms("void reduce<(int)512, (unsigned int)4, (bool)1>(float)"),
                ElementsAre("reduce<(int)512, (unsigned int)4, (bool)1>", "reduce<512, 4, 1>"));
}

TEST(ShortName, CompilersNamesForNoNamespaceAreLeftOut) {
    EXPECT_THAT(forms("void (anonymous namespace)::softmax_forward<float>(float*)"),
                ElementsAre("softmax_forward<float>"));
    EXPECT_THAT(forms("void <unnamed>::norm<1>(float*)"), ElementsAre("norm<1>"));
}

TEST(ShortName, OperatorsAndArrowsAreNoBrackets) {
    EXPECT_THAT(forms("void ns::Less<int>::operator()(int, int) const"),
                ElementsAre("ns::Less<int>::operator()", "ns::Less<int>", "Less<int>"));
    EXPECT_THAT(forms("bool ns::operator< <int>(int)"), ElementsAre("bool ns::operator< <int>"));
    EXPECT_THAT(forms("ns::call<decltype(a->b)>(int)"),
                ElementsAre("ns::call<decltype(a->b)>", "ns::call<decltype>", "call<decltype>"));
}

TEST(ReadableName, SymbolsAreSpelledAsInTheirSource) {
    EXPECT_EQ(readable_name("_ZN2ns4fillIiEEvT_"), "void ns::fill<int>(int)");
    EXPECT_EQ(readable_name("_ZN2ns4fillIiEEvT_.kd"), "void ns::fill<int>(int)");
    EXPECT_EQ(readable_name("i"), "i");
    EXPECT_EQ(readable_name("_Zebra"), "_Zebra");
}

TEST(ShortName, OtherTextsHaveNoShorterForm) {
    for (const std::string_view text :
         {"ncclDevKernel_AllGather_RING_LL", "aten::linear", "FullyShardedDataParallel.forward (layers.0)",
          "Memcpy HtoD (Pageable -> Device)", "autograd::engine::evaluate_function: AddmmBackward0",
          "torch/nn/modules/module.py(1501): _call_impl", "nn.Module: Linear_0", "<built-in function linear>",
          ""})
        EXPECT_THAT(forms(text), IsEmpty()) << text;
}

TEST(ShortName, BracketsThatDoNotCloseAreNoName) {
    for (const std::string_view text : {"ns::f<int", "ns::f(int", "ns::f<int)>(", ")ns::f(", "ns::f(int))"})
        EXPECT_THAT(forms(text), IsEmpty()) << text;
}

TEST(ShortName, AVeryLongNameHasNone) {
    EXPECT_THAT(forms("ns::f<" + std::string(1 << 20, 'a') + ">(int)"), IsEmpty());
}

// Whatever brackets a name has: every form is shorter than the previous one, and the parts make up the last.
TEST(ShortName, FormsOnlyGrowShorter) {
    static constexpr std::string_view kPieces[] = {"a", "::",       "<", ">", "(", ")",
                                                   " ", "operator", "-", "{", "}", ","};
    unsigned seed = 7;
    for (int i = 0; i < 20'000; ++i) {
        std::string text;
        for (int n = 0; n < 14; ++n) {
            seed = seed * 1664525U + 1013904223U;
            text += kPieces[(seed >> 16) % std::size(kPieces)];
        }
        const ShortName name = short_name(text);
        std::size_t before = text.size();
        for (const std::string& form : name.forms) {
            EXPECT_LT(form.size(), before) << text;
            before = form.size();
        }
        if (!name.inner.empty()) {
            EXPECT_EQ(name.head + name.inner + name.tail, name.forms.back()) << text;
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::draw
