// SPDX-License-Identifier: Apache-2.0
// The combinations that are recorded, group by group. A case's name says all of it.
#include "tests/recordings/textures/texture_case.h"

namespace texture_recording {
namespace {

using List = std::vector<Case>;
constexpr const char* address_names[] = {"wrap", "clamp", "mirror", "border"};

std::string format_name(unsigned format, unsigned channels) {
    switch (format) {
    case u8: return "u8x" + std::to_string(channels);
    case u16: return "u16x" + std::to_string(channels);
    case u32: return "u32x" + std::to_string(channels);
    case s8: return "s8x" + std::to_string(channels);
    case s16: return "s16x" + std::to_string(channels);
    case s32: return "s32x" + std::to_string(channels);
    case f16: return "f16x" + std::to_string(channels);
    case f32: return "f32x" + std::to_string(channels);
    default: return "format" + std::to_string(format) + "x" + std::to_string(channels);
    }
}

Case make(std::string fetch, std::array<unsigned, 3> size, unsigned address, unsigned filter, unsigned flags) {
    Case c;
    c.fetch = std::move(fetch);
    c.size = size;
    for (unsigned& mode : c.sampler.addressMode) mode = address;
    c.sampler.filterMode = filter;
    c.sampler.flags = flags;
    if (c.has("a1d") || c.has("a2d") || c.has("acube")) c.array_flags |= layered;
    if (c.has("cube") || c.has("acube")) c.array_flags |= cube;
    return c;
}

/// Names the case after all its fields and adds it.
void add(List& list, Case c, const std::string& note = {}) {
    constexpr const char* sources[] = {"array", "mipmap", "linear", "pitch"};
    constexpr const char* texels[] = {"ramp", "noise", "wild", "scales"};
    const auto& s = c.sampler;
    c.name = c.fetch + "/" + sources[int(c.source)] + "/" + std::to_string(c.size[0]) + "x" + std::to_string(c.size[1]) +
             "x" + std::to_string(c.size[2]) + "/" + format_name(c.format, c.channels) + "/" + texels[int(c.texels)] + "/" +
             (s.filterMode ? "linear" : "point") + "/" + address_names[s.addressMode[0]] + "/flags" + std::to_string(s.flags);
    if (c.source == Source::mipmap)
        c.name += "/" + std::to_string(c.levels) + (s.mipmapFilterMode ? "-linear" : "-point") + "-levels";
    if (!c.offset.empty()) c.name += "/offset" + c.offset;
    if (c.compare) c.name += "/compare";
    if (c.predicate) c.name += "/predicate";
    constexpr const char* gradients[] = {"", "/length", "/lengths", "/direction", "/directions"};
    c.name += gradients[int(c.gradients)];
    if (!note.empty()) c.name += "/" + note;
    for (char& letter : c.name)
        if (letter == ' ') letter = '_';
    for (const Case& other : list)
        if (other.name == c.name) return; // groups overlap
    list.push_back(std::move(c));
}

struct Geometry {
    const char* word;
    std::array<unsigned, 3> even, odd;
};
constexpr Geometry geometries[] = {{"1d", {64, 0, 0}, {37, 0, 0}}, {"2d", {16, 8, 0}, {13, 7, 0}}, {"3d", {8, 4, 4}, {5, 7, 3}}};

/// Where coordinates go and how sums are rounded, in each dimension: single floats, four channels.
void add_filters(List& list) {
    for (const Geometry& g : geometries)
        for (const auto& size : {g.even, g.odd})
            for (Texels texels : {Texels::ramp, Texels::noise})
                for (unsigned mode = 0; mode < 8; ++mode) {
                    Case c = make(std::string("tex.") + g.word + ".v4.f32.f32", size, mode % 4, 1, mode < 4 ? normalized : 0);
                    c.texels = texels;
                    const bool deep = mode == 0 || mode == 5;
                    if (deep) c.samples = texels == Texels::ramp ? 4096 : 8192;
                    add(list, c);
                }
    for (const Geometry& g : geometries)
        for (unsigned mode = 0; mode < 8; ++mode) {
            Case c = make(std::string("tex.") + g.word + ".v4.f32.f32", g.odd, mode % 4, 0, mode < 4 ? normalized : 0);
            c.texels = Texels::ramp;
            c.samples = 2048;
            add(list, c);
        }
    for (unsigned flags : {normalized, 0u})
        for (unsigned x = 4096; x >= 1; x = x == 4096 ? 1000 : x == 1000 ? 3 : x == 3 ? 1 : 0) {
            Case c = make("tex.1d.v4.f32.f32", {x, 0, 0}, flags ? wrap : clamp, 1, flags);
            c.texels = Texels::ramp;
            c.samples = 8192;
            add(list, c);
        }
}

void add_layers(List& list) {
    const Geometry layers[] = {{"a1d", {37, 0, 5}, {}}, {"a2d", {13, 7, 5}, {}}};
    for (const Geometry& g : layers)
        for (unsigned filter : {0u, 1u})
            for (unsigned mode : {0u, 1u, 2u, 3u, 5u, 7u}) {
                Case c = make(std::string("tex.") + g.word + ".v4.f32.f32", g.even, mode % 4, filter, mode < 4 ? normalized : 0);
                if (filter == 0) c.texels = Texels::ramp;
                add(list, c);
            }
}

void add_integer_coordinates(List& list) {
    const Geometry all[] = {geometries[0], geometries[1], geometries[2], {"a1d", {}, {37, 0, 5}}, {"a2d", {}, {13, 7, 5}}};
    for (const Geometry& g : all) {
        for (unsigned mode : {1u, 3u, 4u, 5u, 6u, 7u})
            add(list, make(std::string("tex.") + g.word + ".v4.f32.s32", g.odd, mode % 4, 0, mode < 4 ? 0 : normalized));
        add(list, make(std::string("tex.") + g.word + ".v4.f32.s32", g.odd, clamp, 1, 0));
    }
}

const char* type_of(unsigned format, bool element) {
    if (format == f16 || format == f32 || !element) return "f32";
    return format >= s8 ? "s32" : "u32";
}

void add_formats(List& list) {
    for (unsigned format : {u8, u16, u32, s8, s16, s32, f16, f32})
        for (unsigned channels : {1u, 2u, 4u}) {
            const bool wide = format == u32 || format == s32, real = format == f16 || format == f32;
            const auto with = [&](bool element, unsigned filter, Texels texels) {
                Case c = make(std::string("tex.2d.v4.") + type_of(format, element) + ".f32", {16, 8, 0}, clamp, filter,
                              normalized | (element && !real ? as_integer : 0));
                c.format = format;
                c.channels = channels;
                c.texels = texels;
                if (filter && channels == 4) c.samples = 2048;
                add(list, c);
            };
            if (!real) with(true, 0, Texels::noise);
            if (!wide) with(false, 0, Texels::noise), with(false, 1, Texels::noise);
            if (real) with(false, 0, Texels::wild), with(false, 1, Texels::wild);
        }
    for (unsigned format = 0xc0; format <= 0xcb; ++format) {
        Case c = make("tex.2d.v4.f32.f32", {16, 8, 0}, clamp, 1, normalized);
        c.format = format;
        c.channels = 1u << (format - 0xc0) % 3;
        add(list, c);
    }
    Case packed = make("tex.2d.v4.f32.f32", {16, 8, 0}, clamp, 0, normalized);
    packed.format = 0x50;
    packed.channels = 1;
    add(list, packed);
    for (unsigned channels : {1u, 2u, 4u})
        for (unsigned filter : {0u, 1u}) {
            Case c = make("tex.2d.v4.f32.f32", {16, 16, 0}, clamp, filter, normalized | srgb);
            c.format = u8;
            c.channels = channels;
            c.samples = 2048;
            add(list, c);
        }
    // All values of a format, one by one.
    for (unsigned format : {u8, s8, u16, s16})
        for (unsigned filter : {0u, 1u}) {
            Case c = make("tex.1d.v4.f32.f32", {format == u8 || format == s8 ? 256u : 65536u, 0, 0}, clamp, filter, 0);
            c.format = format;
            c.channels = 1;
            c.texels = Texels::ramp;
            c.samples = 4096;
            add(list, c);
        }
}

/// Instruction types that are not the texture's.
void add_mixed_types(List& list) {
    for (const char* type : {"u32", "s32", "f32"})
        for (unsigned format : {u8, s16, u32, f16, f32}) {
            Case c = make(std::string("tex.2d.v4.") + type + ".f32", {16, 8, 0}, clamp, 0, normalized | as_integer);
            c.format = format;
            add(list, c);
        }
    for (const char* type : {"v4.f16", "v2.f16x2"})
        for (unsigned format : {u8, f16, f32})
            for (unsigned filter : {0u, 1u}) {
                Case c = make(std::string("tex.2d.") + type + ".f32", {16, 8, 0}, clamp, filter, normalized);
                c.format = format;
                if (format != u8) c.texels = Texels::wild;
                add(list, c);
            }
    for (const char* type : {"v4.u32", "v4.s32"})
        for (unsigned format : {u8, f32})
            add(list, [&] {
                Case c = make(std::string("tex.2d.") + type + ".f32", {16, 8, 0}, clamp, 1, normalized);
                c.format = format;
                return c;
            }());
}

void add_borders(List& list) {
    for (unsigned format : {u8, s8, u16, f16, f32})
        for (bool element : {false, true})
            for (unsigned filter : {0u, 1u}) {
                const bool real = format == f16 || format == f32;
                if ((element && filter && !real) || (real && element)) continue;
                Case c = make(std::string("tex.2d.v4.") + type_of(format, element) + ".f32", {13, 7, 0}, border, filter,
                              normalized | (element ? as_integer : 0));
                c.format = format;
                const float color[] = {0.3f, -2.5f, 1.7f, 1000.1f};
                for (unsigned i = 0; i < 4; ++i) c.sampler.borderColor[i] = color[i];
                add(list, c, "color");
            }
    for (unsigned channels : {1u, 2u}) {
        Case c = make("tex.2d.v4.f32.f32", {13, 7, 0}, border, 1, normalized);
        c.channels = channels;
        for (float& color : c.sampler.borderColor) color = 0.75f;
        add(list, c, "color");
    }
    Case mixed = make("tex.3d.v4.f32.f32", {5, 7, 3}, wrap, 1, normalized);
    mixed.sampler.addressMode[1] = mirror;
    mixed.sampler.addressMode[2] = border;
    add(list, mixed, "mirror-border");
    mixed.sampler.addressMode[0] = clamp;
    mixed.sampler.addressMode[1] = border;
    mixed.sampler.addressMode[2] = wrap;
    add(list, mixed, "border-wrap");
}

void add_mipmaps(List& list) {
    const auto with = [&](std::string fetch, std::array<unsigned, 3> size, unsigned levels, unsigned filter, unsigned between,
                          Texels texels, float bias = 0, float low = 0, float high = 99, unsigned flags = normalized,
                          unsigned anisotropy = 0) {
        Case c = make(std::move(fetch), size, wrap, filter, flags);
        c.source = Source::mipmap;
        c.levels = levels;
        c.texels = texels;
        c.sampler.mipmapFilterMode = between;
        c.sampler.mipmapLevelBias = bias;
        c.sampler.minMipmapLevelClamp = low;
        c.sampler.maxMipmapLevelClamp = high;
        c.sampler.maxAnisotropy = anisotropy;
        c.samples = texels == Texels::ramp ? 4096 : 1024;
        std::string note;
        if (bias != 0) note += "bias" + std::to_string(bias);
        if (low != 0 || high != 99) note += "clamp" + std::to_string(low) + "-" + std::to_string(high);
        if (anisotropy) note += "anisotropy" + std::to_string(anisotropy);
        add(list, c, note);
    };
    const Geometry all[] = {{"1d", {64, 0, 0}, {37, 0, 0}}, {"2d", {32, 16, 0}, {29, 13, 0}}, {"3d", {16, 16, 8}, {11, 5, 7}},
                            {"a1d", {64, 0, 3}, {}}, {"a2d", {32, 16, 3}, {}}, {"cube", {16, 16, 6}, {}}, {"acube", {16, 16, 12}, {}}};
    for (const Geometry& g : all)
        for (const char* way : {"level.", "grad."})
            for (unsigned between : {0u, 1u}) {
                const std::string fetch = std::string("tex.") + way + g.word + ".v4.f32.f32";
                with(fetch, g.even, 5, 1, between, Texels::ramp);
                if (between) with(fetch, g.even, 5, 1, between, Texels::noise);
                if (g.odd[0]) with(fetch, g.odd, 4, between, between, Texels::noise);
            }
    for (const char* way : {"level.", "grad.", "base.", ""}) {
        const std::string fetch = std::string("tex.") + way + "2d.v4.f32.f32";
        with(fetch, {32, 32, 0}, 6, 0, 1, Texels::ramp, 0.7f);
        with(fetch, {32, 32, 0}, 6, 1, 1, Texels::ramp, -1.3f, 0.5f, 3.3f);
        with(fetch, {32, 32, 0}, 6, 1, 0, Texels::ramp, 0, 1.5f, 2.0f);
    }
    with("tex.level.2d.v4.f32.f32", {32, 32, 0}, 6, 1, 1, Texels::ramp, 0, 0, 0);
    with("tex.level.2d.v4.f32.f32", {32, 32, 0}, 6, 1, 1, Texels::ramp, 0, 0, 99, 0);
    with("tex.level.2d.v4.f32.f32", {32, 32, 0}, 6, 1, 1, Texels::ramp, 0, 0, 99, normalized | untuned);
    with("tex.grad.2d.v4.f32.f32", {32, 32, 0}, 6, 1, 1, Texels::ramp, 0, 0, 99, normalized | untuned);
    with("tex.grad.2d.v4.f32.f32", {32, 32, 0}, 6, 1, 1, Texels::ramp, 0, 0, 99, normalized, 16);
    with("tex.grad.2d.v4.f32.f32", {32, 32, 0}, 6, 1, 1, Texels::ramp, 0, 0, 99, normalized, 2);
    with("tex.level.2d.v4.f32.s32", {32, 32, 0}, 6, 0, 0, Texels::ramp, 0, 0, 99, 0);
    with("tex.level.3d.v4.f32.s32", {16, 16, 8}, 5, 0, 0, Texels::ramp, 0, 0, 99, 0);
    with("tex.base.2d.v4.f32.s32", {32, 32, 0}, 6, 0, 0, Texels::ramp, 0, 0, 99, 0);
}

void add_cubes(List& list) {
    for (const char* geometry : {"cube", "acube"})
        for (Texels texels : {Texels::ramp, Texels::noise})
            for (unsigned filter : {0u, 1u})
                for (unsigned flags : {normalized, normalized | seamless}) {
                    Case c = make(std::string("tex.") + geometry + ".v4.f32.f32",
                                  {8, 8, geometry[0] == 'a' ? 18u : 6u}, clamp, filter, flags);
                    c.texels = texels;
                    c.samples = 4096;
                    add(list, c);
                }
    for (unsigned address : {0u, 2u, 3u}) add(list, make("tex.cube.v4.f32.f32", {8, 8, 6}, address, 1, normalized));
    add(list, make("tex.cube.v4.f32.f32", {8, 8, 6}, clamp, 1, 0));
    add(list, make("tex.cube.v4.f32.f32", {1, 1, 6}, clamp, 1, normalized | seamless));
}

void add_gathers(List& list) {
    for (const char* component : {"r", "g", "b", "a"})
        for (unsigned mode : {0u, 1u, 2u, 3u, 5u}) {
            Case c = make(std::string("tld4.") + component + ".2d.v4.f32.f32", {13, 7, 0}, mode % 4, mode & 1,
                          mode < 4 ? normalized : 0);
            c.array_flags |= gather;
            add(list, c);
        }
    for (unsigned format : {u8, s16, u32, f16})
        for (unsigned channels : {1u, 4u}) {
            Case c = make(std::string("tld4.g.2d.v4.") + type_of(format, true) + ".f32", {16, 8, 0}, clamp, 0, normalized | as_integer);
            c.format = format;
            c.channels = channels;
            c.array_flags |= gather;
            add(list, c);
        }
    Case real = make("tld4.r.2d.v4.f32.f32", {16, 8, 0}, clamp, 1, normalized);
    real.format = u8;
    real.array_flags |= gather;
    add(list, real);
    real.sampler.flags |= srgb;
    add(list, real);
    for (const char* geometry : {"a2d", "cube", "acube"}) {
        Case c = make(std::string("tld4.b.") + geometry + ".v4.f32.f32",
                      {8, 8, geometry[0] == 'c' ? 6u : 12u}, clamp, 1, normalized);
        c.array_flags |= gather;
        add(list, c);
    }
    Case moved = make("tld4.r.2d.v4.f32.f32", {13, 7, 0}, wrap, 1, normalized);
    moved.array_flags |= gather;
    moved.offset = "{2, -3}";
    add(list, moved);
    moved.offset = "{%r12, %r13}";
    add(list, moved);
}

void add_memory(List& list) {
    for (unsigned format : {u8, s8, u16, u32, f16, f32})
        for (unsigned channels : {1u, 4u}) {
            const bool real = format == f16 || format == f32;
            Case c = make(std::string("tex.1d.v4.") + type_of(format, true) + ".s32", {100, 0, 0}, clamp, 0, real ? 0 : as_integer);
            c.source = Source::linear;
            c.format = format;
            c.channels = channels;
            add(list, c);
        }
    Case scaled = make("tex.1d.v4.f32.s32", {100, 0, 0}, clamp, 0, 0);
    scaled.source = Source::linear;
    scaled.format = u8;
    add(list, scaled);
    scaled.sampler.addressMode[0] = border;
    scaled.format = f32;
    for (float& color : scaled.sampler.borderColor) color = 0.75f;
    add(list, scaled);
    for (unsigned filter : {0u, 1u})
        for (unsigned mode : {0u, 1u, 2u, 3u, 5u, 7u}) {
            Case c = make("tex.2d.v4.f32.f32", {13, 7, 0}, mode % 4, filter, mode < 4 ? normalized : 0);
            c.source = Source::pitch;
            add(list, c);
        }
    Case bytes = make("tex.2d.v4.f32.f32", {13, 7, 0}, wrap, 1, normalized);
    bytes.source = Source::pitch;
    bytes.format = u8;
    bytes.channels = 1;
    add(list, bytes);
}

void add_operands(List& list) {
    const Geometry all[] = {geometries[0], geometries[1], geometries[2], {"a1d", {}, {37, 0, 5}}, {"a2d", {}, {13, 7, 5}}};
    constexpr const char* offsets[] = {"{-3}", "{7, -8}", "{1, -2, 3, 0}", "{5}", "{-1, 2}"};
    for (unsigned g = 0; g < 5; ++g)
        for (unsigned filter : {0u, 1u}) {
            Case c = make(std::string("tex.") + all[g].word + ".v4.f32.f32", all[g].odd, filter ? wrap : border, filter, normalized);
            c.offset = offsets[g];
            add(list, c);
        }
    Case moved = make("tex.2d.v4.f32.f32", {13, 7, 0}, clamp, 1, normalized);
    moved.offset = "{9, -17}";
    add(list, moved);
    moved.offset = "{1, 1}";
    moved.fetch = "tex.2d.v4.f32.s32";
    moved.sampler.filterMode = 0;
    moved.sampler.flags = 0;
    add(list, moved);
    Case deep = make("tex.level.2d.v4.f32.f32", {32, 16, 0}, wrap, 1, normalized);
    deep.source = Source::mipmap;
    deep.levels = 5;
    deep.sampler.mipmapFilterMode = 1;
    deep.sampler.maxMipmapLevelClamp = 99;
    deep.offset = "{3, -2}";
    add(list, deep);
    for (unsigned filter : {0u, 1u}) {
        Case c = make("tex.2d.v4.f32.f32", {13, 7, 0}, clamp, filter, normalized);
        c.predicate = true;
        add(list, c);
        c.predicate = false;
        c.compare = true;
        c.channels = 1;
        add(list, c);
    }
}

/// Many samples of what the first groups left open: gamma, sums of numbers of all sizes, levels from gradients.
void add_sweeps(List& list) {
    Case gamma = make("tex.1d.v4.f32.f32", {256, 0, 0}, clamp, 0, srgb);
    gamma.format = u8;
    gamma.texels = Texels::ramp;
    gamma.samples = 4096;
    add(list, gamma);
    for (unsigned format : {u8, s16, u32, s32}) {
        Case c = make(std::string("tex.2d.v4.") + type_of(format, true) + ".f32", {16, 8, 0}, clamp, 1, normalized | as_integer);
        c.format = format;
        add(list, c);
    }
    for (unsigned format : {s8, f16, f32})
        for (const Geometry& g : geometries) {
            Case c = make(std::string("tex.") + g.word + ".v4.f32.f32", g.even, wrap, 1, normalized);
            c.format = format;
            c.texels = Texels::scales;
            c.samples = 8192;
            add(list, c);
        }
    for (unsigned g = 0; g < 3; ++g)
        for (Gradients gradients : {Gradients::length, Gradients::lengths, Gradients::direction, Gradients::directions}) {
            if (g == 0 && gradients >= Gradients::direction) continue;
            const std::array<unsigned, 3> sizes[] = {{64, 0, 0}, {64, 64, 0}, {32, 32, 32}};
            Case c = make(std::string("tex.grad.") + geometries[g].word + ".v4.f32.f32", sizes[g], wrap, 0, normalized);
            c.source = Source::mipmap;
            c.levels = g == 2 ? 6 : 7;
            c.texels = Texels::ramp;
            c.sampler.mipmapFilterMode = 1;
            c.sampler.maxMipmapLevelClamp = 99;
            c.samples = 8192;
            c.gradients = gradients;
            add(list, c);
        }
}

} // namespace

std::vector<Case> all_cases() {
    List list;
    add_filters(list);
    add_layers(list);
    add_integer_coordinates(list);
    add_formats(list);
    add_mixed_types(list);
    add_borders(list);
    add_mipmaps(list);
    add_cubes(list);
    add_gathers(list);
    add_memory(list);
    add_operands(list);
    add_sweeps(list);
    for (Case& c : sweep_cases()) list.push_back(std::move(c));
    return list;
}

} // namespace texture_recording
