/* ortc/ortc.hpp: ortc.h for C++17: objects that release themselves, exceptions, views of elements.
 *
 *   ortc::model model("digits.onnx");
 *   ortc::session session(model);
 *   auto out = session.run({{"image", ortc::value::copy<float>({1, 1, 8, 8}, pixels)}});
 *   for (float p : out[0].data<float>()) std::cout << p << '\n';
 *
 * Header only: it needs libortc and nothing else. Every object is a handle: copying one adds a reference,
 * moving takes it over, and get() gives what the functions of ortc.h take. All errors are ortc::error, with
 * the library's text and code. Threads: as ortc.h says of the functions behind each member.
 */
#ifndef ORTC_ORTC_HPP
#define ORTC_ORTC_HPP

#include <algorithm>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ortc.h"

namespace ortc {

/* What a call of the library says when it fails. */
class error : public std::runtime_error {
  public:
    explicit error(const ortc_error &e) : std::runtime_error(e.text), code_(e.code) {}
    error(ortc_status code, const std::string &text) : std::runtime_error(text), code_(code) {}
    ortc_status code() const noexcept { return code_; }
    const char *name() const noexcept { return ortc_status_name(code_); }

  private:
    ortc_status code_;
};

namespace detail {

inline void check(ortc_status status, const ortc_error &e)
{
    if (status != ORTC_OK) throw error(e);
}

template <class T> struct dtype;
template <> struct dtype<float> {
    static constexpr ortc_dtype value = ORTC_F32;
};
template <> struct dtype<double> {
    static constexpr ortc_dtype value = ORTC_F64;
};
template <> struct dtype<std::int8_t> {
    static constexpr ortc_dtype value = ORTC_I8;
};
template <> struct dtype<std::int16_t> {
    static constexpr ortc_dtype value = ORTC_I16;
};
template <> struct dtype<std::int32_t> {
    static constexpr ortc_dtype value = ORTC_I32;
};
template <> struct dtype<std::int64_t> {
    static constexpr ortc_dtype value = ORTC_I64;
};
template <> struct dtype<std::uint8_t> {
    static constexpr ortc_dtype value = ORTC_U8;
};
template <> struct dtype<std::uint16_t> {
    static constexpr ortc_dtype value = ORTC_U16;
};
template <> struct dtype<std::uint32_t> {
    static constexpr ortc_dtype value = ORTC_U32;
};
template <> struct dtype<std::uint64_t> {
    static constexpr ortc_dtype value = ORTC_U64;
};
template <> struct dtype<bool> {
    static constexpr ortc_dtype value = ORTC_BOOL;
};
template <> struct dtype<std::complex<float>> {
    static constexpr ortc_dtype value = ORTC_C64;
};
template <> struct dtype<std::complex<double>> {
    static constexpr ortc_dtype value = ORTC_C128;
};

/* The only reference to an object of the library, which can be moved. */
template <class T, void (*Release)(T *)> class owner {
  public:
    owner() noexcept = default;
    explicit owner(T *owned) noexcept : raw_(owned) {}
    owner(owner &&o) noexcept : raw_(std::exchange(o.raw_, nullptr)) {}
    owner &operator=(owner &&o) noexcept
    {
        std::swap(raw_, o.raw_);
        return *this;
    }
    ~owner() { Release(raw_); }
    T *get() const noexcept { return raw_; }
    explicit operator bool() const noexcept { return raw_ != nullptr; }

  protected:
    T *raw_ = nullptr;
};

/* One of several: what is counted can be copied, too. */
template <class T, T *(*Retain)(T *), void (*Release)(T *)> class handle : public owner<T, Release> {
  public:
    using owner<T, Release>::owner;
    handle() noexcept = default;
    handle(const handle &o) noexcept : owner<T, Release>(o.raw_ ? Retain(o.raw_) : nullptr) {}
    handle(handle &&o) noexcept = default;
    handle &operator=(const handle &o) noexcept { return *this = handle(o); }
    handle &operator=(handle &&o) noexcept = default;
};

} // namespace detail

/* The element type of T. */
template <class T> inline constexpr ortc_dtype dtype_of = detail::dtype<std::remove_cv_t<T>>::value;

/* Elements that somebody else owns (C++20 has std::span). */
template <class T> class span {
  public:
    span() noexcept = default;
    span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T &operator[](std::size_t i) const noexcept { return data_[i]; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

using shape = std::vector<std::int64_t>;

/* A tensor, sequence, map or optional. */
class value : public detail::handle<ortc_value, ortc_value_retain, ortc_value_release> {
  public:
    using handle::handle;

    /* A tensor of its own memory, its elements not set. */
    static value create(ortc_dtype t, const shape &dims)
    {
        ortc_error e = ORTC_ERROR_INIT;
        ortc_value *v = nullptr;
        detail::check(ortc_value_create(t, rank_of(dims), dims.data(), &v, &e), e);
        return value(v);
    }
    /* A tensor with a copy of the elements of a container, or of a pointer and a size. */
    template <class T> static value copy(const shape &dims, const T *from, std::size_t n)
    {
        value v = create(dtype_of<T>, dims);
        if (n != static_cast<std::size_t>(v.count()))
            throw error(ORTC_INVALID_ARGUMENT, "the shape has " + std::to_string(v.count()) + " elements, " +
                                                   std::to_string(n) + " are given");
        if (n) std::copy(from, from + n, static_cast<T *>(ortc_value_data(v.get())));
        return v;
    }
    template <class T, class Container> static value copy(const shape &dims, const Container &from)
    {
        return copy<T>(dims, from.data(), from.size());
    }
    template <class T> static value copy(const shape &dims, std::initializer_list<T> from)
    {
        return copy<T>(dims, from.begin(), from.size());
    }
    /* A tensor over the caller's memory, which must live as long as it; nothing is copied. */
    template <class T> static value wrap(T *data, const shape &dims)
    {
        ortc_error e = ORTC_ERROR_INIT;
        ortc_value *v = nullptr;
        void *memory = const_cast<void *>(static_cast<const void *>(data));
        detail::check(ortc_value_wrap(memory, dtype_of<T>, rank_of(dims), dims.data(), nullptr, nullptr, &v,
                                      &e),
                      e);
        return value(v);
    }
    static value strings(const shape &dims, const std::vector<std::string> &texts)
    {
        std::vector<const char *> data;
        std::vector<std::size_t> lengths;
        for (const std::string &s : texts) {
            data.push_back(s.data());
            lengths.push_back(s.size());
        }
        std::int64_t n = 1;
        for (std::int64_t d : dims) n *= d;
        if (n != static_cast<std::int64_t>(texts.size()))
            throw error(ORTC_INVALID_ARGUMENT, "the shape and the number of strings differ");
        ortc_error e = ORTC_ERROR_INIT;
        ortc_value *v = nullptr;
        detail::check(ortc_value_create_strings(rank_of(dims), dims.data(), data.data(), lengths.data(), &v,
                                                &e),
                      e);
        return value(v);
    }

    ortc_dtype dtype() const noexcept { return ortc_value_dtype(raw_); }
    std::int64_t count() const noexcept { return ortc_value_count(raw_); }
    shape dims() const
    {
        const std::int64_t *d = ortc_value_dims(raw_);
        return d ? shape(d, d + ortc_value_rank(raw_)) : shape();
    }
    /* The elements, of exactly this type, on the host. */
    template <class T> span<const T> data() const
    {
        return {static_cast<const T *>(elements(dtype_of<T>)), static_cast<std::size_t>(count())};
    }
    /* The same to write into: of the caller's own values. */
    template <class T> span<T> mutable_data()
    {
        elements(dtype_of<T>);
        return {static_cast<T *>(ortc_value_data(raw_)), static_cast<std::size_t>(count())};
    }
    std::string string(std::int64_t i) const
    {
        if (dtype() != ORTC_STRING || i < 0 || i >= count())
            throw error(ORTC_INVALID_ARGUMENT, "there is no string " + std::to_string(i));
        std::size_t n = 0;
        const char *s = ortc_value_string(raw_, i, &n);
        return std::string(s, n);
    }
    /* Of a sequence or an optional; of a map: 0 keys, 1 values. */
    value element(std::size_t i) const
    {
        ortc_value *v = ortc_value_element(raw_, i);
        if (!v) throw error(ORTC_INVALID_ARGUMENT, "there is no element " + std::to_string(i));
        return value(ortc_value_retain(v));
    }

  private:
    static std::int32_t rank_of(const shape &dims) { return static_cast<std::int32_t>(dims.size()); }
    const void *elements(ortc_dtype wanted) const
    {
        const void *data = raw_ ? ortc_value_host(raw_) : nullptr;
        if (!raw_ || dtype() != wanted || (!data && count()))
            throw error(ORTC_TYPE_MISMATCH, std::string("expected a tensor of ") + ortc_dtype_name(wanted) +
                                                " on the host, got " +
                                                (raw_ ? ortc_dtype_name(dtype()) : "none"));
        return data;
    }
};

/* A loaded file. */
class model : public detail::handle<ortc_model, ortc_model_retain, ortc_model_release> {
  public:
    using handle::handle;
    explicit model(const std::string &path, const ortc_model_options *options = nullptr)
    {
        ortc_error e = ORTC_ERROR_INIT;
        detail::check(ortc_model_load(path.c_str(), options, &raw_, &e), e);
    }
    /* From memory, which must stay as it is while the model lives. */
    model(const void *data, std::size_t bytes, const ortc_model_options *options = nullptr)
    {
        ortc_error e = ORTC_ERROR_INIT;
        detail::check(ortc_model_load_memory(data, bytes, options, &raw_, &e), e);
    }
    const ortc_model_info &info() const noexcept { return *ortc_model_describe(raw_); }
    /* Borrowed from the model. */
    std::vector<const ortc_io *> inputs() const { return list(ortc_model_input); }
    std::vector<const ortc_io *> outputs() const { return list(ortc_model_output); }

  private:
    std::vector<const ortc_io *> list(const ortc_io *(*at)(const ortc_model *, std::size_t)) const
    {
        std::vector<const ortc_io *> all;
        for (const ortc_io *io; (io = at(raw_, all.size()));) all.push_back(io);
        return all;
    }
};

class session;

/* What one conversation or stream keeps between its runs. Cannot be copied. */
class state : public detail::owner<ortc_state, ortc_state_release> {
  public:
    using owner::owner;
    explicit state(const session &);
    std::int64_t length() const noexcept { return ortc_state_length(raw_); }
    void truncate(std::int64_t n)
    {
        ortc_error e = ORTC_ERROR_INIT;
        detail::check(ortc_state_truncate(raw_, n, &e), e);
    }
};

/* A model placed on providers, ready to run. */
class session : public detail::handle<ortc_session, ortc_session_retain, ortc_session_release> {
  public:
    struct tie {
        std::string input, output;
        std::int32_t axis = -1;
        std::int64_t capacity = 0;
    };
    struct options {
        std::string providers, require; /* "": the library's defaults */
        std::uint32_t threads = 0;
        std::vector<std::pair<std::string, std::int64_t>> dims;
        std::vector<tie> ties;
    };
    using named = std::pair<std::string, value>;

    using handle::handle;
    explicit session(const model &m) : session(m, options()) {}
    session(const model &m, const options &o) : model_(m)
    {
        ortc_session_options raw = ORTC_SESSION_OPTIONS_INIT;
        std::vector<const char *> names;
        std::vector<std::int64_t> extents;
        std::vector<ortc_tie> ties;
        for (const auto &d : o.dims) {
            names.push_back(d.first.c_str());
            extents.push_back(d.second);
        }
        for (const tie &t : o.ties)
            ties.push_back(ortc_tie{t.input.c_str(), t.output.c_str(), t.axis, 0, t.capacity});
        raw.providers = o.providers.empty() ? nullptr : o.providers.c_str();
        raw.require = o.require.empty() ? nullptr : o.require.c_str();
        raw.threads = o.threads;
        raw.n_dims = names.size();
        raw.dim_names = names.data();
        raw.dim_values = extents.data();
        raw.n_ties = ties.size();
        raw.ties = ties.data();
        ortc_error e = ORTC_ERROR_INIT;
        detail::check(ortc_session_create(m.get(), &raw, &raw_, &e), e);
    }

    /* Runs the model: all outputs, in the model's order. With a state, tied ones are copies. */
    std::vector<value> run(const std::vector<named> &in, state *s = nullptr, std::int64_t advance = 0) const
    {
        std::vector<std::string> names;
        for (const ortc_io *io : model_.outputs()) names.emplace_back(io->name);
        return run(in, names, s, advance);
    }
    /* The same with the outputs named. */
    std::vector<value> run(const std::vector<named> &in, const std::vector<std::string> &outputs,
                           state *s = nullptr, std::int64_t advance = 0) const
    {
        std::vector<ortc_in> given;
        std::vector<ortc_out> got;
        for (const named &n : in) given.push_back(ortc_in{n.first.c_str(), n.second.get()});
        for (const std::string &n : outputs) got.push_back(ortc_out{n.c_str(), nullptr, 0, 0});
        ortc_run_args args = ORTC_RUN_ARGS_INIT;
        args.in = given.data();
        args.n_in = given.size();
        args.out = got.data();
        args.n_out = got.size();
        args.state = s ? s->get() : nullptr;
        args.advance = advance;
        ortc_error e = ORTC_ERROR_INIT;
        detail::check(ortc_run(raw_, &args, &e), e);
        std::vector<value> results;
        for (const ortc_out &o : got) results.emplace_back(o.value);
        return results;
    }

  private:
    model model_;
};

inline state::state(const session &s)
{
    ortc_error e = ORTC_ERROR_INIT;
    detail::check(ortc_state_create(s.get(), &raw_, &e), e);
}

} // namespace ortc

#endif
