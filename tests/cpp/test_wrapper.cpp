/* tests/cpp/test_wrapper.cpp: the C++ interface, ortc.hpp: values of every kind, references, errors, a run,
 * a state. usage: test_wrapper DIGITS.onnx SUM.onnx     SUM: next = h + x, f32[n] */
#include <cstdio>
#include <ortc/ortc.hpp>
#include <type_traits>

static int passed, failed;

static void check(bool good, const char *what)
{
    good ? passed++ : failed++;
    if (!good) std::printf("FAIL %s\n", what);
}

/* Handles that are counted can be copied; a state is one conversation's. */
template <class T>
constexpr bool copies = std::is_nothrow_copy_constructible_v<T> &&std::is_nothrow_copy_assignable_v<T>;
template <class T>
constexpr bool moves = std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T>;
static_assert(copies<ortc::value> && copies<ortc::model> && moves<ortc::value> && moves<ortc::model>);
static_assert(moves<ortc::state> && !std::is_copy_constructible_v<ortc::state> &&
              !std::is_copy_assignable_v<ortc::state>);

/* The code of what it throws; 0: nothing. */
template <class Call> static ortc_status thrown(Call call)
{
    try {
        call();
    } catch (const ortc::error &e) {
        return e.what()[0] ? e.code() : -1;
    }
    return 0;
}

static void values()
{
    const ortc::value v = ortc::value::copy<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
    check(v.dtype() == ORTC_I64 && v.count() == 6 && v.dims() == ortc::shape({2, 3}),
          "a tensor's type and shape");
    check(v.data<std::int64_t>()[5] == 6, "its elements");
    check(thrown([&] { (void)v.data<float>(); }) == ORTC_TYPE_MISMATCH, "another element type");
    check(thrown([] { (void)ortc::value().data<float>(); }) == ORTC_TYPE_MISMATCH, "no value");
    check(thrown([] {
              (void)ortc::value::copy<float>({3}, {1, 2});
          }) == ORTC_INVALID_ARGUMENT,
          "too few elements");
    check(thrown([] { (void)ortc::value::create(ORTC_F32, {-1}); }) == ORTC_INVALID_ARGUMENT,
          "a negative extent");
    const ortc::value scalar = ortc::value::copy<double>({}, {0.5});
    check(scalar.dims().empty() && scalar.data<double>()[0] == 0.5, "a scalar");
    float memory[4] = {1, 2, 3, 4};
    ortc::value wrapped = ortc::value::wrap(memory, {4});
    wrapped.mutable_data<float>()[1] = 7;
    check(memory[1] == 7 && wrapped.data<float>().data() == memory, "memory of the caller's");
    const float fixed[1] = {3};
    check(ortc::value::wrap(fixed, {1}).data<float>()[0] == 3, "which may be constant");
    const ortc::value words = ortc::value::strings({2}, {"one", std::string("t\0o", 3)});
    check(words.string(1) == std::string("t\0o", 3), "strings");
    check(thrown([&] { (void)words.string(2); }) == ORTC_INVALID_ARGUMENT, "no such string");
    check(thrown([] { (void)ortc::value::strings({3}, {"a"}); }) == ORTC_INVALID_ARGUMENT, "too few strings");
    check(thrown([&] { (void)v.element(0); }) == ORTC_INVALID_ARGUMENT,
          "a tensor has no elements that are values");
    ortc::value copy = v, moved = std::move(copy);
    check(!copy && moved.get() == v.get(), "copies share, moves leave nothing");
    ortc::value &same = moved;
    moved = same;
    check(moved.data<std::int64_t>()[0] == 1, "assigned to itself");
}

static void digits(const char *path)
{
    const ortc::model model(path);
    check(model.inputs().size() == 1 && std::string(model.outputs()[0]->name) == "probabilities",
          "inputs and outputs");
    check(model.info().n_nodes > 0, "what describes a model");
    ortc::session::options o;
    o.providers = "ref";
    o.dims = {{"N", 2}};
    const ortc::session session(model, o);
    const auto out = session.run(
        {{"image", ortc::value::copy<float>({2, 1, 8, 8}, std::vector<float>(128))}});
    check(out.size() == 1 && out[0].dims() == ortc::shape({2, 10}), "a run");
    float sum = 0;
    for (float p : out[0].data<float>()) sum += p;
    check(sum > 1.999f && sum < 2.001f, "probabilities");
    check(thrown([&] { session.run({}); }) == ORTC_INVALID_ARGUMENT, "an input is missing");
    check(thrown([&] { session.run({}, {"none"}); }) == ORTC_INVALID_ARGUMENT, "no such output");
    check(thrown([&] { ortc::state none(session); }) == ORTC_INVALID_ARGUMENT, "no ties, no state");
    o.providers = "tpu";
    check(thrown([&] { ortc::session none(model, o); }) == ORTC_NOT_FOUND, "no such provider");
    check(thrown([] { ortc::model none("none.onnx"); }) == ORTC_NOT_FOUND, "no such file");
    check(thrown([] { ortc::model none("junk", 4); }) == ORTC_INVALID_MODEL, "no model in memory");
}

static void state(const char *path)
{
    ortc::session::options o;
    o.ties = {{"h", "next"}};
    o.dims = {{"n", 1}};
    const ortc::session session(ortc::model(path), o); /* keeps the model */
    ortc::state a(session), b(session);
    for (float x : {1.f, 2.f, 3.f}) session.run({{"x", ortc::value::copy<float>({1}, {x})}}, {}, &a, 1);
    const auto sum = session.run({{"x", ortc::value::copy<float>({1}, {4})}}, &a, 1);
    check(sum[0].data<float>()[0] == 10 && a.length() == 0, "a state, which has no positions");
    check(session.run({{"x", ortc::value::copy<float>({1}, {4})}}, &b)[0].data<float>()[0] == 4,
          "another one");
    a.truncate(0);
    ortc::state c = std::move(a);
    check(session.run({{"x", ortc::value::copy<float>({1}, {5})}}, &c)[0].data<float>()[0] == 5,
          "from the start, moved");
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    try {
        values();
        digits(argv[1]);
        state(argv[2]);
    } catch (const std::exception &e) {
        std::printf("FAIL %s\n", e.what());
        failed++;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
