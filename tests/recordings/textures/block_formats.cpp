// SPDX-License-Identifier: Apache-2.0
// Block-compressed textures: views of arrays of words, and arrays of the formats themselves; codes, and hashes of all texels of 4,096 random
// blocks and of 16,384 filtered samples.
//   block_formats LIBCUDA            prints
//   block_formats LIBCUDA RECORDING  compares with the output of a GPU's driver; "~" marks lines that are known to differ
#include "tests/recordings/textures/compare_lines.h"
#include "tests/recordings/textures/recording.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>

using namespace texture_recording;

namespace {

constexpr unsigned side = 256, blocks = side / 4, samples = 16384; ///< texels, blocks of an edge
using Extent = std::array<unsigned, 2>;

/// A kernel of one thread per texel or sample that stores four floats.
std::string kernel(const std::string& coordinates) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 o, .param .u64 x, .param .u64 y)\n{\n"
           ".reg .b64 %d<8>; .reg .b32 %r<16>; .reg .f32 %f<8>;\n"
           "ld.param.u64 %d0, [o]; ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];\n"
           "mov.u32 %r8, %ctaid.x; mov.u32 %r9, %ntid.x; mov.u32 %r10, %tid.x; mad.lo.u32 %r8, %r8, %r9, %r10;\n"
           "mul.wide.u32 %d4, %r8, 16; add.u64 %d0, %d0, %d4;\n" + coordinates +
           "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1}];\nst.global.v4.f32 [%d0], {%f4,%f5,%f6,%f7};\nret;\n}\n";
}

class Recorder {
public:
    explicit Recorder(const char* library) : driver_(library) {
        texels_ = driver_.load(kernel("and.b32 %r4, %r8, 255; shr.u32 %r5, %r8, 8; cvt.rn.f32.u32 %f0, %r4; cvt.rn.f32.u32 %f1, %r5;\n"
                                      "add.f32 %f0, %f0, 0f3f000000; add.f32 %f1, %f1, 0f3f000000;\n"));
        filtered_ = driver_.load(kernel("mul.wide.u32 %d5, %r8, 8; add.u64 %d5, %d5, %d2; ld.global.v2.f32 {%f0,%f1}, [%d5];\n"));
        std::vector<float> at(samples * 2);
        Random random(99);
        for (float& coordinate : at) coordinate = random.between(0, side);
        coordinates_ = driver_.upload(at.data(), at.size() * 4);
    }

    std::string run() {
        for (unsigned format = first_view; format <= last_view; ++format)
            for (unsigned flags : {0u, 0x10u}) view(format, flags);
        for (unsigned format = 0x91; format <= 0x9e; ++format)
            for (unsigned channels : {1u, 2u, 3u, 4u})
                for (const Extent& extent : {Extent{side, side}, {255, 253}, {3, 3}, {side, 0}}) array(format, channels, extent);
        for (unsigned format = 0x91; format <= 0x9e; ++format) {
            sampled(format);
            shapes(format);
        }
        return out_.str();
    }

private:
    // Numbers of the kinds: CUresourceViewFormat and ten more.
    static constexpr unsigned first_view = 0x23, last_view = 0x2c, bc2 = 0x24, bc3 = 0x25, signed_bc5 = 0x29, bc6 = 0x2a, bc7 = 0x2c, offset = 10;

    static bool is_small(unsigned kind) { return kind == first_view || kind == 0x26 || kind == 0x27; }
    static unsigned bytes_of(unsigned kind) { return is_small(kind) ? 8 : 16; }
    static unsigned kind_of(unsigned format) { return format <= 0x96 ? first_view + (format - 0x91) / 2 : format <= 0x9c ? 0x26 + (format - 0x97) : bc7; }

    /// Random blocks, some of them with equal ends, the modes of BC7 spread evenly where `even`.
    static std::vector<std::uint8_t> make_blocks(unsigned kind, bool even) {
        const unsigned bytes = bytes_of(kind);
        std::vector<std::uint8_t> data(std::size_t{blocks} * blocks * bytes);
        Random random(kind);
        for (auto& byte : data) byte = std::uint8_t(random.bits() >> 24);
        for (unsigned i = 0; even && kind == bc7 && i < blocks * blocks; ++i) {
            std::uint8_t& first = data[std::size_t{i} * 16];
            const unsigned mode = i % 9;
            if (mode == 8) first = i & 9 ? 0 : first;
            else first = std::uint8_t((first & ~((2u << mode) - 1)) | 1u << mode);
        }
        for (unsigned i = 0; kind <= bc3 && i < blocks * blocks; i += 5) {
            std::uint8_t* ends = &data[std::size_t{i} * bytes + (is_small(kind) ? 0 : 8)];
            ends[2] = ends[0];
            ends[3] = ends[1];
            if (i % 2) ends[2] ^= 1;
        }
        for (unsigned i = 0; kind >= bc3 && kind <= signed_bc5 && i < blocks * blocks; i += 7) data[std::size_t{i} * bytes + 1] = data[std::size_t{i} * bytes];
        return data;
    }

    std::string hash(CUmodule module, CUtexObject texture, unsigned count) {
        std::vector<std::uint32_t> values(std::size_t{count} * 4, 0xcdcdcdcd);
        CUfunction function = nullptr;
        driver_.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "k");
        CUdeviceptr result = driver_.upload(values.data(), values.size() * 4);
        void* parameters[] = {&result, &texture, &coordinates_};
        driver_.launch(function, count / 256, 256, parameters);
        driver_.call("cuCtxSynchronize");
        driver_.call("cuMemcpyDtoH_v2", static_cast<void*>(values.data()), result, values.size() * 4);
        driver_.call<CUdeviceptr>("cuMemFree_v2", result);
        char text[20];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(seed_of({reinterpret_cast<const char*>(values.data()), values.size() * 4})));
        return text;
    }

    int make_texture(CUtexObject& object, CUarray array, unsigned filter, unsigned flags, unsigned kind, unsigned width, unsigned height) {
        CUDA_RESOURCE_DESC resource{};
        resource.res.array.hArray = array;
        CUDA_TEXTURE_DESC sampler{{1, 1, 1}, filter, flags, 0, 0, 0, 0, 0, {}, {}};
        CUDA_RESOURCE_VIEW_DESC view{};
        view.format = kind - offset;
        view.width = width;
        view.height = height;
        return driver_.result<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, CUDA_RESOURCE_VIEW_DESC*>("cuTexObjectCreate", &object, &resource, &sampler,
                                                                                                             kind ? &view : nullptr);
    }

    int copy_in(CUarray array, const std::uint8_t* data, std::size_t width, std::size_t height) {
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = 1;
        copy.srcHost = data;
        copy.dstMemoryType = 3;
        copy.dstArray = array;
        copy.srcPitch = copy.WidthInBytes = width;
        copy.Height = height;
        return driver_.result("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&copy));
    }

    CUarray words(unsigned channels) {
        CUarray array = nullptr;
        CUDA_ARRAY3D_DESCRIPTOR shape{blocks, blocks, 0, 3, channels, 0};
        driver_.call("cuArray3DCreate_v2", &array, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
        return array;
    }

    void view(unsigned kind, unsigned flags) {
        out_ << "view " << std::hex << kind << " flags " << flags << std::dec << ": ";
        CUarray array = words(is_small(kind) ? 2 : 4), other = words(is_small(kind) ? 4 : 2);
        copy_in(array, make_blocks(kind, true).data(), std::size_t{blocks} * bytes_of(kind), blocks);
        CUtexObject object = 0;
        for (unsigned filter : {0u, 1u}) {
            const int code = make_texture(object, array, filter, flags, kind, side, side);
            out_ << " create " << code;
            if (code == 0) out_ << ' ' << (filter ? hash(filtered_, object, samples) : hash(texels_, object, side * side));
        }
        for (const auto& [width, height, is_other] :
             {std::array<unsigned, 3>{blocks, blocks, 0}, {side - 1, side, 0}, {side - 3, side - 3, 0}, {side - 4, side, 0}, {side, side, 1}})
            out_ << " [" << width << ' ' << height << ' ' << is_other << ": " << make_texture(object, is_other ? other : array, 0, flags, kind, width, height) << ']';
        out_ << '\n';
    }

    void array(unsigned format, unsigned channels, Extent extent) {
        CUarray array = nullptr;
        CUDA_ARRAY3D_DESCRIPTOR shape{extent[0], extent[1], 0, format, channels, 0}, back{};
        int code = driver_.result("cuArray3DCreate_v2", &array, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
        out_ << "format " << std::hex << format << std::dec << " x" << channels << ' ' << extent[0] << 'x' << extent[1] << ": " << code;
        if (code == 0) {
            code = driver_.result("cuArray3DGetDescriptor_v2", &back, array);
            out_ << " back " << code << ' ' << back.Width << 'x' << back.Height << ' ' << std::hex << back.Format << std::dec << " x" << back.NumChannels << ';';
            if (extent == Extent{side, side}) fill(array, format);
            driver_.call<CUarray>("cuArrayDestroy", array);
        }
        out_ << '\n';
    }

    void fill(CUarray array, unsigned format) {
        const unsigned kind = kind_of(format);
        const unsigned bytes = bytes_of(kind);
        std::vector<std::uint8_t> data = make_blocks(kind, false);
        data.resize(data.size() + std::size_t{4096} * 256);
        for (const Extent& part : {Extent{blocks * bytes, blocks}, {blocks * bytes, side}, {side * bytes, blocks}, {side * bytes, side}, {side, side}}) {
            out_ << " copy " << part[0] << 'x' << part[1] << ' ' << copy_in(array, data.data(), part[0], part[1]);
            CUtexObject object = 0;
            const int code = make_texture(object, array, 0, 0, 0, 0, 0);
            if (code) out_ << " create " << code;
            else out_ << ' ' << hash(texels_, object, side * side);
        }
    }

    static unsigned channels_of(unsigned format) { return format <= 0x96 || format >= 0x9d ? 4 : format <= 0x98 ? 1 : format <= 0x9a ? 2 : 3; }

    /// All texels and the filtered samples of a plane, by the sampler's flags: whole numbers, normalized coordinates, gamma.
    void sampled(unsigned format) {
        out_ << "sampled " << std::hex << format << std::dec << ':';
        CUarray array = nullptr;
        CUDA_ARRAY3D_DESCRIPTOR shape{side, side, 0, format, channels_of(format), 0};
        const int code = driver_.result("cuArray3DCreate_v2", &array, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
        if (code) {
            out_ << ' ' << code << '\n';
            return;
        }
        const unsigned kind = kind_of(format);
        copy_in(array, make_blocks(kind, false).data(), std::size_t{blocks} * bytes_of(kind), blocks);
        for (unsigned flags : {0u, 1u, 2u, 0x10u, 0x11u, 0x12u})
            for (unsigned filter : {0u, 1u}) {
                CUtexObject object = 0;
                const int made = make_texture(object, array, filter, flags, 0, 0, 0);
                out_ << " [" << std::hex << flags << std::dec << ' ' << filter << ": " << made;
                if (made == 0) out_ << ' ' << (filter ? hash(filtered_, object, samples) : hash(texels_, object, side * side));
                out_ << ']';
            }
        out_ << '\n';
        driver_.call<CUarray>("cuArrayDestroy", array);
    }

    /// Codes of arrays of other shapes, of textures of them without and with gamma, and of a surface.
    void shapes(unsigned format) {
        struct Shape {
            const char* name;
            std::size_t height, depth;
            unsigned flags;
        };
        constexpr unsigned layered = 1, surface = 2, cube = 4, gather = 8;
        out_ << "shapes " << std::hex << format << std::dec << ':';
        for (const Shape& s : {Shape{"layers", 64, 3, layered}, {"lines", 0, 3, layered}, {"cube", 64, 6, cube}, {"cubes", 64, 12, cube | layered},
                               {"deep", 64, 3, 0}, {"gather", 64, 0, gather}, {"surface", 64, 0, surface}}) {
            CUDA_ARRAY3D_DESCRIPTOR shape{64, s.height, s.depth, format, channels_of(format), s.flags};
            CUarray array = nullptr;
            const int code = driver_.result("cuArray3DCreate_v2", &array, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
            out_ << ' ' << s.name << ' ' << code;
            if (code == 0) objects_of(array, nullptr);
        }
        CUDA_ARRAY3D_DESCRIPTOR shape{64, 64, 0, format, channels_of(format), 0};
        CUmipmappedArray mipmap = nullptr;
        const int code = driver_.result("cuMipmappedArrayCreate", &mipmap, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape), 7u);
        out_ << " mipmap " << code;
        if (code == 0) objects_of(nullptr, mipmap);
        out_ << '\n';
    }

    void objects_of(CUarray array, CUmipmappedArray mipmap) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = mipmap ? 1 : 0;
        if (mipmap) resource.res.mipmap.hMipmappedArray = mipmap;
        else resource.res.array.hArray = array;
        for (unsigned flags : {0u, 0x10u}) {
            CUDA_TEXTURE_DESC sampler{{1, 1, 1}, 0, flags | 2u, 0, 0, 0, 0, 0, {}, {}};
            CUtexObject object = 0;
            out_ << '/' << driver_.result<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, CUDA_RESOURCE_VIEW_DESC*>("cuTexObjectCreate", &object, &resource, &sampler, nullptr);
        }
        if (array) {
            CUsurfObject object = 0;
            out_ << '/' << driver_.result("cuSurfObjectCreate", &object, static_cast<const CUDA_RESOURCE_DESC*>(&resource));
        }
    }

    Driver driver_;
    CUmodule texels_ = nullptr, filtered_ = nullptr;
    CUdeviceptr coordinates_ = 0;
    std::ostringstream out_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) {
        std::fprintf(stderr, "usage: block_formats LIBCUDA [RECORDING]\n");
        return 2;
    }
    try {
        const std::string text = Recorder(argv[1]).run();
        if (argc == 2) return std::fputs(text.c_str(), stdout) < 0;
        std::istringstream ours(text);
        std::ifstream recording(argv[2]);
        return compare_lines(ours, recording);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
