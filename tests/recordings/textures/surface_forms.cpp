// SPDX-License-Identifier: Apache-2.0
// Loads, stores and reductions of surfaces through the driver API, recorded on a GPU and compared like texture_forms:
//   surface_forms LIBCUDA RECORDING [--record | --raw FILE | --against FILE]
// One thread runs all samples of a case in order, so that collisions have one outcome; the result is what it loaded and
// what the array holds afterwards.
#include "runtime/shim/cuda_types.h"
#include "tests/recordings/textures/recording.h"
#include "tests/recordings/textures/texture_case.h"

#include <algorithm>
#include <bit>

using namespace texture_recording;

namespace {

struct SurfaceCase {
    std::string operation; ///< PTX words
    std::array<unsigned, 3> size{};
    unsigned flags = surface, format = u32, channels = 1;
    unsigned registers = 0; ///< that stand there, 0: as many as the words say
    std::string name() const {
        return operation + "/" + std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]) +
               "/format" + std::to_string(format) + "x" + std::to_string(channels) +
               (registers ? "/registers" + std::to_string(registers) : "");
    }
    bool has(std::string_view word) const {
        return ("." + operation + ".").find("." + std::string(word) + ".") != std::string::npos;
    }
    unsigned vector() const { return has("v2") ? 2 : has("v4") ? 4 : 1; }
    unsigned bits() const {
        for (unsigned size : {8u, 16u, 64u})
            for (char kind : {'b', 'u', 's'})
                if (has(kind + std::to_string(size))) return size;
        return 32;
    }
    std::size_t bytes() const {
        const unsigned rows = size[1] ? size[1] : 1, slices = size[2] ? size[2] : 1;
        return std::size_t{size[0]} * rows * slices * element_bytes(format, channels);
    }
};

constexpr unsigned samples = 128;

std::string kernel_text(const SurfaceCase& c) {
    const char* coordinates = c.has("1d") ? "{%r0}" : c.has("2d") || c.has("a1d") ? "{%r0, %r1}" : "{%r0, %r1, %r2, %r2}";
    const unsigned wide = c.bits() == 8 ? 16 : c.bits();
    const std::string reg = "%v" + std::to_string(wide) + "_";
    std::string value = reg + "0";
    const unsigned registers = c.registers ? c.registers : c.vector();
    for (unsigned i = 1; i < registers; ++i) value += ", " + reg + std::to_string(i);
    if (registers > 1) value = "{" + value + "}";
    std::string text = ".version 8.1\n.target sm_90\n.address_size 64\n"
        ".visible .entry act(.param .u64 s, .param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
        ".reg .b32 %r<4>; .reg .b16 %v16_<4>; .reg .b32 %v32_<4>; .reg .b64 %v64_<4>; .reg .b64 %d<4>; .reg .pred %p; .reg .b32 %n;\n"
        "ld.param.u64 %d0, [s]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %n, [n];\nloop:\n";
    for (unsigned i = 0; i < 4; ++i) text += "ld.global.b32 %r" + std::to_string(i) + ", [%d1+" + std::to_string(4 * i) + "];\n";
    const bool load = c.operation.starts_with("suld");
    const auto each = [&](const char* move, const char* order) {
        for (unsigned i = 0; i < registers; ++i) {
            const std::string place = std::string("[%d") + (load ? "2" : "1") + "+" + std::to_string((load ? 0 : 16) + 8 * i) + "]";
            const std::string name = reg + std::to_string(i);
            text += std::string(move) + ".global.b" + std::to_string(wide) + " " + (*order == 'l' ? name + ", " + place : place + ", " + name) + ";\n";
        }
    };
    if (load) {
        text += c.operation + " " + value + ", [%d0, " + coordinates + "];\n";
        each("st", "s");
    } else {
        each("ld", "l");
        text += c.operation + " [%d0, " + coordinates + "], " + value + ";\n";
    }
    return text + "add.u64 %d1, %d1, 48; add.u64 %d2, %d2, 32; sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra loop;\nret;\n}\n";
}

/// Twelve words per sample: coordinates, data. x is a multiple of the access.
std::vector<std::uint32_t> inputs_of(const SurfaceCase& c) {
    Random random(seed_of(c.name()));
    std::vector<std::uint32_t> inputs(samples * 12);
    const bool trap = c.has("trap"), by_sample = c.operation[4] == '.' ? c.operation[5] == 'p' : c.operation[6] == 'p';
    const unsigned access = c.bits() / 8 * c.vector();
    for (unsigned i = 0; i < samples; ++i) {
        std::uint32_t* next = &inputs[i * 12];
        const auto one = [&](unsigned size, unsigned scale) {
            std::uint32_t value = trap || random.below(4) ? random.below(size) : random.below(size + 6) - 3;
            if (!trap && random.below(32) == 0) value = random.below(2) ? 0x40000000u : 0xffff0000u;
            *next++ = value * scale;
        };
        const unsigned elements = by_sample ? c.size[0] : std::max(1u, c.size[0] * element_bytes(c.format, c.channels) / access);
        if (c.has("a1d") || c.has("a2d")) one(c.size[2], 1);
        one(elements, by_sample ? 1 : access);
        if (!c.has("1d") && !c.has("a1d")) one(c.size[1], 1);
        if (c.has("3d")) one(c.size[2], 1);
        for (unsigned w = 4; w < 12; ++w) inputs[i * 12 + w] = std::uint32_t(random.bits());
        // Formatted stores convert: numbers near what formats hold.
        if (by_sample && c.operation.starts_with("sust") && random.below(2))
            for (unsigned w = 4; w < 12; w += 2)
                inputs[i * 12 + w] = c.format == f16 || c.format == f32 || c.format >= 0xc0 ? std::bit_cast<std::uint32_t>(random.between(-2, 2))
                                                                         : random.below(70000) - 1000;
    }
    return inputs;
}

std::vector<SurfaceCase> surface_cases() {
    std::vector<SurfaceCase> list;
    const std::array<unsigned, 3> sizes[] = {{37, 0, 0}, {13, 7, 0}, {5, 7, 3}, {37, 0, 5}, {13, 7, 5}};
    const char* geometries[] = {"1d", "2d", "3d", "a1d", "a2d"};
    const auto add = [&](std::string operation, unsigned g, unsigned format, unsigned channels, unsigned registers = 0) {
        SurfaceCase c{std::move(operation), sizes[g], surface | (g >= 3 ? layered : 0), format, channels, registers};
        if (std::none_of(list.begin(), list.end(), [&](const SurfaceCase& other) { return other.name() == c.name(); }))
            list.push_back(c);
    };
    for (unsigned g = 0; g < 5; ++g)
        for (const char* bounds : {"clamp", "zero", "trap"}) {
            const std::string tail = std::string(".") + bounds, geometry = geometries[g];
            add("suld.b." + geometry + ".b32" + tail, g, u32, 1);
            add("suld.b." + geometry + ".v4.b32" + tail, g, f32, 4);
            add("sust.b." + geometry + ".b32" + tail, g, u32, 1);
            add("sust.b." + geometry + ".v4.b32" + tail, g, f32, 4);
        }
    for (const char* bounds : {"clamp", "zero"}) {
        const std::string tail = std::string(".") + bounds;
        for (const char* type : {"b8", "b16", "b32", "b64"})
            for (const char* vector : {"", ".v2", ".v4"}) {
                if (type[1] == '6' && vector[0] && vector[2] == '4') continue;
                for (unsigned channels : {1u, 4u})
                    for (unsigned format : {u8, f16, u32})
                        for (const char* operation : {"suld.b.2d", "sust.b.2d"})
                            add(operation + std::string(vector) + "." + type + tail, 1, format, channels);
            }
        for (unsigned format : {u8, s8, u16, s16, u32, s32, f16, f32, 0xc2u, 0xc8u, 0xc5u, 0xcbu})
            for (const char* vector : {"", ".v2", ".v4"}) {
                if (format >= 0xc0 && !(vector[0] && vector[2] == '4')) continue;
                add(std::string("sust.p.2d") + vector + ".b32" + tail, 1, format, vector[0] ? unsigned(vector[2] - '0') : 1);
            }
        for (unsigned g = 0; g < 3; ++g) add(std::string("sust.p.") + geometries[g] + ".v4.b32" + tail, g, u8, 4);
        for (const char* form : {"b.add.2d.u32", "b.add.2d.s32", "b.min.2d.u32", "b.min.2d.s32", "b.max.2d.u32", "b.max.2d.s32", "b.and.2d.b32",
                                 "b.or.2d.b32", "b.add.1d.u32", "b.add.3d.u32", "p.add.2d.b32", "p.min.2d.b32", "p.max.2d.b32", "p.and.2d.b32", "p.or.2d.b32"})
            for (unsigned format : {u32, s32}) add(std::string("sured.") + form + tail, form[6] == '1' ? 0 : form[6] == '3' ? 2 : 1, format, 1);
        for (const char* form : {"b.add.2d.u64", "b.min.2d.u64", "b.min.2d.s64", "b.max.2d.u64", "b.max.2d.s64", "p.min.2d.b64", "p.max.2d.b64"})
            for (unsigned format : {u32, s32}) add(std::string("sured.") + form + tail, 1, format, 2);
    }
    // More registers than the words say; beyond the manual, taken by ptxas.
    for (unsigned registers : {2u, 4u}) {
        for (const char* type : {"b8", "b16", "b32", "b64"})
            for (const char* operation : {"suld.b.2d.", "sust.b.2d."}) add(operation + std::string(type) + ".zero", 1, u32, 1, registers);
        for (unsigned format : {u8, f16, u32}) add("sust.p.2d.b32.zero", 1, format, 4, registers);
    }
    return list;
}

void copy(Driver& driver, const SurfaceCase& c, CUarray array, void* host, bool to_array) {
    CUDA_MEMCPY3D box{};
    box.WidthInBytes = box.srcPitch = box.dstPitch = std::size_t{c.size[0]} * element_bytes(c.format, c.channels);
    box.Height = box.srcHeight = box.dstHeight = c.size[1] ? c.size[1] : 1;
    box.Depth = c.size[2] ? c.size[2] : 1;
    box.srcMemoryType = to_array ? 1 : 3;
    box.dstMemoryType = to_array ? 3 : 1;
    box.srcHost = box.dstHost = host;
    box.srcArray = box.dstArray = array;
    driver.call("cuMemcpy3D_v2", &box);
}

std::vector<std::uint32_t> run(Driver& driver, const SurfaceCase& c) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    const std::string text = kernel_text(c);
    driver.call<CUmodule*, const void*>("cuModuleLoadData", &module, text.c_str());
    driver.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "act");
    const CUDA_ARRAY3D_DESCRIPTOR shape{c.size[0], c.size[1], c.size[2], c.format, c.channels, c.flags};
    CUarray array = nullptr;
    driver.call("cuArray3DCreate_v2", &array, &shape);
    const std::size_t bytes = c.bytes();
    std::vector<std::uint32_t> results(samples * 8 + (bytes + 3) / 4, 0xcdcdcdcd);
    Random random(1);
    for (std::size_t i = samples * 8; i < results.size(); ++i) results[i] = std::uint32_t(random.bits());
    copy(driver, c, array, &results[samples * 8], true);
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    CUsurfObject object = 0;
    driver.call("cuSurfObjectCreate", &object, &resource);
    const auto inputs = inputs_of(c);
    CUdeviceptr in = driver.upload(inputs.data(), inputs.size() * 4), out = driver.upload(results.data(), samples * 32);
    unsigned count = samples;
    void* parameters[] = {&object, &in, &out, &count};
    driver.launch(function, 1, 1, parameters);
    driver.call("cuMemcpyDtoH_v2", static_cast<void*>(results.data()), out, std::size_t{samples} * 32);
    copy(driver, c, array, &results[samples * 8], false);
    driver.call("cuSurfObjectDestroy", object);
    driver.call("cuArrayDestroy", array);
    driver.call("cuMemFree_v2", in);
    driver.call("cuMemFree_v2", out);
    driver.call("cuModuleUnload", module);
    return results;
}

} // namespace

int main(int argc, char** argv) {
    return record_or_compare(argc, argv, [](Driver& driver, Recording& recording) {
        for (const SurfaceCase& c : surface_cases())
            recording.take(c.name(), [&] { return run(driver, c); },
                           [&](std::size_t word) {
                               const auto inputs = inputs_of(c);
                               std::string text = word < samples * 8 ? "inputs of sample " + std::to_string(word / 8) + ":" : "texel word";
                               for (unsigned i = 0; word < samples * 8 && i < 12; ++i) text += " " + std::to_string(int(inputs[word / 8 * 12 + i]));
                               return text;
                           });
    });
}
