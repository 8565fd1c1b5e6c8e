// SPDX-License-Identifier: Apache-2.0
// Prints what the driver says to calls on arrays, textures and surfaces: codes, descriptors, queries, faults.
//   texture_api LIBCUDA            prints
//   texture_api LIBCUDA RECORDING  compares with the output of a GPU's driver
#include "tests/recordings/textures/recording.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <sstream>

using namespace texture_recording;

namespace {

std::ostringstream out;

template <class... Arguments> int show(Driver& driver, const std::string& what, const char* name, Arguments... arguments) {
    const int code = driver.result<Arguments...>(name, arguments...);
    out << what << ": " << code << '\n';
    return code;
}

std::string text_of(const CUDA_ARRAY3D_DESCRIPTOR& d) {
    std::ostringstream text;
    text << d.Width << 'x' << d.Height << 'x' << d.Depth << " format " << d.Format << 'x' << d.NumChannels << " flags " << d.Flags;
    return text.str();
}

void arrays(Driver& driver) {
    const CUDA_ARRAY3D_DESCRIPTOR shapes[] = {
        {16, 0, 0, 32, 1, 0}, {16, 8, 0, 32, 4, 0}, {16, 8, 4, 1, 2, 0}, {0, 0, 0, 32, 1, 0}, {0, 8, 0, 32, 1, 0},
        {16, 0, 4, 32, 1, 0}, {16, 8, 0, 32, 3, 0}, {16, 8, 0, 32, 0, 0}, {16, 8, 0, 32, 8, 0}, {16, 8, 0, 0, 1, 0}, {16, 8, 0, 4, 1, 0},
        {16, 8, 0, 0x21, 1, 0}, {131072, 0, 0, 1, 1, 0}, {131073, 0, 0, 1, 1, 0}, {131072, 1, 0, 1, 1, 0}, {131073, 1, 0, 1, 1, 0},
        {1, 65536, 0, 1, 1, 0}, {1, 65537, 0, 1, 1, 0}, {16384, 1, 1, 1, 1, 0}, {16385, 1, 1, 1, 1, 0}, {1, 16385, 1, 1, 1, 0},
        {1, 1, 16384, 1, 1, 0}, {1, 1, 16385, 1, 1, 0}, {16, 0, 5, 32, 1, 1}, {16, 8, 5, 32, 1, 1}, {16, 0, 0, 32, 1, 1}, {16, 8, 0, 32, 1, 1},
        {16, 0, 2048, 1, 1, 1}, {16, 0, 2049, 1, 1, 1}, {1, 1, 2049, 1, 1, 1}, {32769, 0, 1, 1, 1, 1}, {32768, 0, 1, 1, 1, 1}, {8, 8, 6, 32, 1, 4},
        {8, 8, 5, 32, 1, 4}, {8, 7, 6, 32, 1, 4}, {8, 8, 12, 32, 1, 4}, {8, 8, 12, 32, 1, 5}, {8, 8, 13, 32, 1, 5}, {8, 8, 0, 32, 1, 5},
        {16, 8, 0, 32, 1, 2}, {16, 8, 0, 32, 1, 8}, {16, 0, 0, 32, 1, 8}, {16, 8, 4, 32, 1, 8}, {16, 8, 4, 32, 1, 9}, {32769, 8, 0, 1, 1, 8},
        {16, 8, 0, 32, 1, 0x10}, {16, 8, 0, 32, 1, 0x20}, {16, 8, 0, 32, 1, 0x100}, {16, 8, 0, 32, 1, 0x1000},
        {16, 8, 0, 0xc0, 1, 0}, {16, 8, 0, 0xc0, 2, 0}, {16, 8, 0, 0xc2, 4, 0}, {16, 8, 0, 0xc2, 1, 0}, {16, 8, 0, 0x50, 1, 0}, 
        {16, 8, 0, 0x91, 1, 0}, {16, 8, 0, 0xb0, 3, 0}, {16, 8, 0, 0xb0, 1, 0}, {32769, 0, 0, 1, 1, 2}, {131072, 8, 0, 1, 1, 2}};
    for (const auto& shape : shapes) {
        CUarray array = nullptr;
        if (show(driver, "cuArray3DCreate " + text_of(shape), "cuArray3DCreate_v2", &array, &shape)) continue;
        CUDA_ARRAY3D_DESCRIPTOR back{};
        if (show(driver, "  cuArray3DGetDescriptor", "cuArray3DGetDescriptor_v2", &back, array) == 0) out << "  " << text_of(back) << '\n';
        CUDA_ARRAY_DESCRIPTOR flat{};
        if (show(driver, "  cuArrayGetDescriptor", "cuArrayGetDescriptor_v2", &flat, array) == 0)
            out << "  " << flat.Width << 'x' << flat.Height << " format " << flat.Format << 'x' << flat.NumChannels << '\n';
        driver.call("cuArrayDestroy", array);
    }
    const CUDA_ARRAY_DESCRIPTOR flat_shapes[] = {{16, 0, 32, 1}, {16, 8, 32, 4}, {0, 8, 32, 1}, {16, 8, 32, 3}, {16, 8, 5, 1}};
    for (const auto& shape : flat_shapes) {
        CUarray array = nullptr;
        std::ostringstream name;
        name << "cuArrayCreate " << shape.Width << 'x' << shape.Height << " format " << shape.Format << 'x' << shape.NumChannels;
        if (show(driver, name.str(), "cuArrayCreate_v2", &array, &shape)) continue;
        CUDA_ARRAY3D_DESCRIPTOR back{};
        if (show(driver, "  cuArray3DGetDescriptor", "cuArray3DGetDescriptor_v2", &back, array) == 0) out << "  " << text_of(back) << '\n';
        driver.call("cuArrayDestroy", array);
    }
    CUarray array = nullptr;
    show<CUarray*, void*>(driver, "cuArray3DCreate null shape", "cuArray3DCreate_v2", &array, nullptr);
    show<void*, const void*>(driver, "cuArray3DCreate null result", "cuArray3DCreate_v2", nullptr, &shapes[0]);
    show<CUarray>(driver, "cuArrayDestroy null", "cuArrayDestroy", nullptr);
}

void mipmaps(Driver& driver) {
    struct {
        CUDA_ARRAY3D_DESCRIPTOR shape;
        unsigned levels;
    } const all[] = {{{32, 16, 0, 32, 4, 0}, 1}, {{32, 16, 0, 32, 4, 0}, 6}, {{32, 16, 0, 32, 4, 0}, 7}, {{32, 16, 0, 32, 4, 0}, 0},
                     {{37, 0, 0, 32, 1, 0}, 6}, {{37, 0, 0, 32, 1, 0}, 100}, {{8, 4, 16, 32, 1, 0}, 5}, {{8, 4, 3, 32, 1, 1}, 4}, {{8, 8, 6, 32, 1, 4}, 4},
                     {{32, 16, 0, 32, 1, 2}, 3}, {{32, 16, 0, 32, 1, 8}, 3}, {{32, 16, 0, 32, 3, 0}, 3}};
    for (const auto& [shape, levels] : all) {
        CUmipmappedArray mipmap = nullptr;
        if (show(driver, "cuMipmappedArrayCreate " + text_of(shape) + " levels " + std::to_string(levels), "cuMipmappedArrayCreate", &mipmap, &shape, levels))
            continue;
        for (unsigned level = 0; level <= 7; ++level) {
            CUarray array = nullptr;
            if (show(driver, "  cuMipmappedArrayGetLevel " + std::to_string(level), "cuMipmappedArrayGetLevel", &array, mipmap, level)) continue;
            CUDA_ARRAY3D_DESCRIPTOR back{};
            driver.call("cuArray3DGetDescriptor_v2", &back, array);
            out << "  " << text_of(back) << '\n';
        }
        show(driver, "  cuMipmappedArrayDestroy", "cuMipmappedArrayDestroy", mipmap);
    }
}

std::string text_of(const CUDA_TEXTURE_DESC& t) {
    std::ostringstream text;
    text << "address " << t.addressMode[0] << t.addressMode[1] << t.addressMode[2] << " filter " << t.filterMode << " flags " << t.flags << " anisotropy "
         << t.maxAnisotropy << " between " << t.mipmapFilterMode << " bias " << t.mipmapLevelBias << " clamp " << t.minMipmapLevelClamp << ' '
         << t.maxMipmapLevelClamp << " border " << t.borderColor[0] << ' ' << t.borderColor[3];
    return text.str();
}

CUarray make(Driver& driver, CUDA_ARRAY3D_DESCRIPTOR shape) {
    CUarray array = nullptr;
    driver.call("cuArray3DCreate_v2", &array, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
    return array;
}

void texture(Driver& driver, const std::string& what, const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampler,
             const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
    CUtexObject object = 0;
    if (show(driver, "cuTexObjectCreate " + what + ' ' + text_of(sampler), "cuTexObjectCreate", &object, &resource, &sampler, view)) return;
    CUDA_RESOURCE_DESC resource_back{};
    CUDA_TEXTURE_DESC sampler_back{};
    CUDA_RESOURCE_VIEW_DESC view_back{};
    const int a = driver.result("cuTexObjectGetResourceDesc", &resource_back, object), b = driver.result("cuTexObjectGetTextureDesc", &sampler_back, object),
              c = driver.result("cuTexObjectGetResourceViewDesc", &view_back, object);
    out << "  back " << a << b << c << " type " << resource_back.resType << ' ' << text_of(sampler_back) << " view " << view_back.format << ' ' << view_back.width
        << '\n';
    show(driver, "  cuTexObjectDestroy", "cuTexObjectDestroy", object);
}

void textures(Driver& driver) {
    CUDA_RESOURCE_DESC resource{};
    const auto array_of = [&](CUDA_ARRAY3D_DESCRIPTOR shape) { resource.res.array.hArray = make(driver, shape); };
    array_of({16, 8, 0, 32, 4, 0});
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u, 8u, 0x10u, 0x20u, 0x40u, 0x80u, 0x100u})
        for (unsigned filter : {0u, 1u}) {
            CUDA_TEXTURE_DESC sampler{{0, 2, 3}, filter, flags, 0, 0, 0, 0, 0, {}, {}};
            texture(driver, "f32x4", resource, sampler);
        }
    for (unsigned value : {1u, 4u, 16u, 17u, 1000u}) {
        CUDA_TEXTURE_DESC sampler{};
        sampler.addressMode[1] = value;
        texture(driver, "address", resource, sampler);
        sampler = {};
        sampler.filterMode = value;
        texture(driver, "filter", resource, sampler);
        sampler = {};
        sampler.mipmapFilterMode = value;
        texture(driver, "between", resource, sampler);
        sampler = {};
        sampler.maxAnisotropy = value;
        texture(driver, "anisotropy", resource, sampler);
        sampler = {};
        sampler.minMipmapLevelClamp = float(value);
        sampler.mipmapLevelBias = -float(value);
        texture(driver, "clamp", resource, sampler);
    }
    resource.flags = 1;
    texture(driver, "resource flags", resource, {});
    resource.flags = 0;
    resource.resType = 4;
    texture(driver, "resource type 4", resource, {});
    resource.resType = 0;
    for (unsigned format : {1u, 3u, 8u, 10u, 16u, 0xc0u}) {
        array_of({16, 8, 0, format, 1, 0});
        for (unsigned filter : {0u, 1u})
            for (unsigned flags : {0u, 1u, 2u, 3u, 0x12u}) {
                CUDA_TEXTURE_DESC sampler{};
                sampler.filterMode = filter;
                sampler.flags = flags;
                texture(driver, "format " + std::to_string(format), resource, sampler);
            }
    }
    resource.res.array.hArray = nullptr;
    texture(driver, "null array", resource, {});
    CUdeviceptr memory = 0;
    driver.call("cuMemAlloc_v2", &memory, std::size_t{1} << 20);
    resource.resType = 2;
    struct {
        std::size_t offset;
        unsigned format, channels;
        std::size_t size;
    } const lines[] = {{0, 32, 1, 400}, {0, 32, 4, 400}, {0, 32, 3, 400}, {4, 32, 1, 400}, {16, 32, 1, 400}, {256, 32, 1, 400}, {512, 32, 1, 400}, {0, 32, 1, 401}, {0, 32, 1, 3},
                       {0, 32, 1, 0}, {0, 0, 1, 400}, {0, 1, 1, 1 << 20}, {0, 1, 1, (1 << 20) + 1}, {0, 1, 1, 268435456}, {0, 1, 1, 268435457}, {0, 0xc0, 1, 400}};
    for (const auto& line : lines)
        for (unsigned filter : {0u, 1u})
            for (unsigned flags : {0u, 2u}) {
                resource.res.linear = {memory + line.offset, line.format, line.channels, line.size};
                CUDA_TEXTURE_DESC sampler{};
                sampler.filterMode = filter;
                sampler.flags = flags;
                texture(driver, "linear +" + std::to_string(line.offset) + " format " + std::to_string(line.format) + 'x' + std::to_string(line.channels) + " bytes " + std::to_string(line.size), resource, sampler);
            }
    resource.res.linear = {0, 32, 1, 400};
    texture(driver, "linear null", resource, {});
    resource = {};
    resource.resType = 3;
    struct {
        std::size_t offset, width, height, pitch;
    } const planes[] = {{0, 16, 8, 64}, {0, 16, 8, 32}, {0, 16, 8, 72}, {0, 16, 8, 96}, {16, 16, 8, 64}, {32, 16, 8, 64}, {512, 16, 8, 64}, {0, 0, 8, 64}, {0, 16, 0, 64}, {0, 17, 8, 64},
                        {0, 131072, 1, 524288}, {0, 131073, 1, 524320}, {0, 1, 65000, 32}, {0, 1, 65001, 32}, {0, 16, 8, 2097120}, {0, 16, 8, 2097152}};
    for (const auto& plane : planes) {
        resource.res.pitch2D = {memory + plane.offset, 32, 1, plane.width, plane.height, plane.pitch};
        texture(driver, "pitch +" + std::to_string(plane.offset) + ' ' + std::to_string(plane.width) + 'x' + std::to_string(plane.height) + " pitch " + std::to_string(plane.pitch), resource, {});
    }
    CUDA_TEXTURE_DESC sampler{};
    CUtexObject object = 0;
    show<CUtexObject*, void*, CUDA_TEXTURE_DESC*, void*>(driver, "cuTexObjectCreate null resource", "cuTexObjectCreate", &object, nullptr, &sampler, nullptr);
    show<CUtexObject*, CUDA_RESOURCE_DESC*, void*, void*>(driver, "cuTexObjectCreate null sampler", "cuTexObjectCreate", &object, &resource, nullptr, nullptr);
    show<void*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, void*>(driver, "cuTexObjectCreate null result", "cuTexObjectCreate", nullptr, &resource, &sampler, nullptr);
    show<CUtexObject>(driver, "cuTexObjectDestroy 0", "cuTexObjectDestroy", 0);
    show<CUtexObject>(driver, "cuTexObjectDestroy bogus", "cuTexObjectDestroy", 0x123456);
    show<CUDA_RESOURCE_DESC*, CUtexObject>(driver, "cuTexObjectGetResourceDesc bogus", "cuTexObjectGetResourceDesc", &resource, 0x123456);
    resource = {};
    array_of({16, 8, 0, 3, 2, 0});
    for (unsigned format = 0; format <= 24; ++format) {
        const CUDA_RESOURCE_VIEW_DESC view{format, 16, 8, 0, 0, 0, 0, 0, {}};
        texture(driver, "view " + std::to_string(format), resource, sampler, &view);
    }
    const CUDA_RESOURCE_VIEW_DESC smaller{0x0e, 8, 4, 0, 0, 0, 0, 0, {}};
    texture(driver, "smaller view", resource, sampler, &smaller);
}

void surfaces(Driver& driver) {
    for (unsigned flags : {0u, 2u}) {
        CUDA_RESOURCE_DESC resource{};
        resource.res.array.hArray = make(driver, {16, 8, 0, 32, 4, flags});
        CUsurfObject object = 0;
        if (show(driver, "cuSurfObjectCreate array flags " + std::to_string(flags), "cuSurfObjectCreate", &object, &resource) == 0) {
            CUDA_RESOURCE_DESC back{};
            show(driver, "  cuSurfObjectGetResourceDesc", "cuSurfObjectGetResourceDesc", &back, object);
            out << "  type " << back.resType << (back.res.array.hArray == resource.res.array.hArray ? " same" : " other") << '\n';
            show(driver, "  cuSurfObjectDestroy", "cuSurfObjectDestroy", object);
            show(driver, "  cuSurfObjectDestroy again", "cuSurfObjectDestroy", object);
        }
        for (unsigned type : {1u, 2u, 3u, 4u}) {
            resource.resType = type;
            if (type > 1) show(driver, "cuSurfObjectCreate type " + std::to_string(type), "cuSurfObjectCreate", &object, &resource);
        }
    }
    show<CUsurfObject>(driver, "cuSurfObjectDestroy 0", "cuSurfObjectDestroy", 0);
    show<CUsurfObject>(driver, "cuSurfObjectDestroy bogus", "cuSurfObjectDestroy", 0x123456);
}

void copies(Driver& driver) {
    CUarray line = make(driver, {64, 0, 0, 1, 1, 0}), plane = make(driver, {16, 8, 0, 32, 1, 0}), box = make(driver, {4, 3, 2, 32, 1, 0});
    char host[1024] = {};
    const std::pair<std::size_t, std::size_t> ranges[] = {{0, 64}, {0, 65}, {32, 32}, {32, 33}, {64, 0}, {100, 1}, {0, 0}, {3, 5}};
    for (const auto& [offset, size] : ranges) {
        const std::string tail = std::to_string(offset) + '+' + std::to_string(size);
        show<CUarray, std::size_t, const void*, std::size_t>(driver, "cuMemcpyHtoA " + tail, "cuMemcpyHtoA_v2", line, offset, host, size);
        show<void*, CUarray, std::size_t, std::size_t>(driver, "cuMemcpyAtoH " + tail, "cuMemcpyAtoH_v2", host, line, offset, size);
        show<CUarray, std::size_t, CUarray, std::size_t, std::size_t>(driver, "cuMemcpyAtoA " + tail, "cuMemcpyAtoA_v2", line, 0, line, offset, size);
        show<void*, CUarray, std::size_t, std::size_t>(driver, "cuMemcpyAtoH plane " + tail, "cuMemcpyAtoH_v2", host, plane, offset, size);
        show<void*, CUarray, std::size_t, std::size_t>(driver, "cuMemcpyAtoH plane 8*" + tail, "cuMemcpyAtoH_v2", host, plane, 8 * offset, 8 * size);
        show<void*, CUarray, std::size_t, std::size_t>(driver, "cuMemcpyAtoH box " + tail, "cuMemcpyAtoH_v2", host, box, offset, size);
    }
    struct {
        std::size_t x, y, width, height;
    } const areas[] = {{0, 0, 64, 8}, {0, 0, 65, 8}, {4, 0, 64, 8}, {0, 0, 64, 9}, {0, 4, 64, 4}, {0, 4, 64, 5}, {2, 0, 4, 1}, {0, 0, 3, 1}, {0, 0, 0, 1}, {64, 0, 4, 1}};
    for (const auto& area : areas)
        for (bool to_array : {true, false}) {
            CUDA_MEMCPY2D copy{};
            copy.srcMemoryType = to_array ? 1 : 3;
            copy.dstMemoryType = to_array ? 3 : 1;
            copy.srcHost = copy.dstHost = host;
            copy.srcArray = copy.dstArray = plane;
            (to_array ? copy.dstXInBytes : copy.srcXInBytes) = area.x;
            (to_array ? copy.dstY : copy.srcY) = area.y;
            copy.srcPitch = copy.dstPitch = 100;
            copy.WidthInBytes = area.width;
            copy.Height = area.height;
            std::ostringstream name;
            name << "cuMemcpy2D " << (to_array ? "to" : "from") << " array " << area.x << ',' << area.y << ' ' << area.width << 'x' << area.height;
            show(driver, name.str(), "cuMemcpy2D_v2", &copy);
        }
    CUDA_MEMCPY2D null{};
    null.srcMemoryType = 3;
    null.dstMemoryType = 1;
    null.dstHost = host;
    null.WidthInBytes = null.Height = 1;
    show(driver, "cuMemcpy2D from no array", "cuMemcpy2D_v2", &null);
    CUDA_MEMCPY3D deep{};
    deep.srcMemoryType = 3;
    deep.dstMemoryType = 1;
    deep.srcArray = box;
    deep.dstHost = host;
    deep.WidthInBytes = 16;
    deep.Height = 3;
    for (std::size_t depth : {0, 1, 2, 3}) {
        deep.Depth = depth;
        show(driver, "cuMemcpy3D depth " + std::to_string(depth), "cuMemcpy3D_v2", &deep);
    }
}

/// Every query of an object, by a kernel.
void queries(Driver& driver, const std::string& what, const char* opcode, CUtexObject object) {
    const bool is_texture = opcode[0] == 't';
    const std::vector<const char*> words = is_texture ? std::vector<const char*>{"width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords", "array_size",
                                                                                "num_mipmap_levels", "num_samples", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"}
                                                      : std::vector<const char*>{"width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout"};
    for (const char* word : words) {
        const std::string text = std::string(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry q(.param .u64 t, .param .u64 o)\n{\n.reg .b64 %d<2>; .reg .b32 %r;\n"
                                             "ld.param.u64 %d0, [t]; ld.param.u64 %d1, [o];\n") + opcode + "." + word + ".b32 %r, [%d0];\nst.global.b32 [%d1], %r;\nret;\n}\n";
        std::string answer;
        try {
            CUmodule module = driver.load(text);
            CUfunction function = nullptr;
            driver.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "q");
            unsigned value = 0xcdcdcdcd;
            CUdeviceptr result = driver.upload(&value, 4);
            void* parameters[] = {&object, &result};
            driver.launch(function, 1, 1, parameters);
            driver.call("cuMemcpyDtoH_v2", static_cast<void*>(&value), result, std::size_t{4});
            answer = std::to_string(value);
        } catch (const DriverError& error) {
            answer = error.what();
        }
        out << opcode << '.' << word << ' ' << what << ": " << answer << '\n';
    }
}

void all_queries(Driver& driver) {
    const auto ask = [&](const std::string& what, CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels = 0) {
        CUDA_RESOURCE_DESC resource{};
        if (levels) {
            resource.resType = 1;
            driver.call("cuMipmappedArrayCreate", &resource.res.mipmap.hMipmappedArray, static_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape), levels);
        } else {
            resource.res.array.hArray = make(driver, shape);
        }
        CUDA_TEXTURE_DESC sampler{{1, 2, 3}, 1, 2, 0, 0, 0, 0, 99, {}, {}};
        CUtexObject object = 0;
        driver.call<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, void*>("cuTexObjectCreate", &object, &resource, &sampler, nullptr);
        queries(driver, what, "txq", object);
        if (levels || !(shape.Flags & 2)) return;
        driver.call("cuSurfObjectCreate", &object, &resource);
        queries(driver, what, "suq", object);
    };
    ask("1d", {37, 0, 0, 32, 4, 2});
    ask("2d", {16, 8, 0, 32, 1, 2});
    ask("3d", {16, 8, 4, 16, 2, 2});
    ask("a1d", {16, 0, 5, 32, 1, 3});
    ask("a2d", {16, 8, 5, 32, 1, 3});
    ask("cube", {8, 8, 6, 32, 1, 4});
    ask("mipmap", {32, 16, 0, 32, 1, 0}, 5);
    for (unsigned format : {1u, 2u, 8u, 9u, 16u, 0xc2u}) ask("format " + std::to_string(format), {16, 8, 0, format, 4, 2});
}

/// One kernel of one thread that does `body` with a handle; in a process of its own, because faults stick.
void fault(const char* library, const std::string& what, const std::string& body, const std::function<CUtexObject(Driver&)>& make_handle) {
    int ends[2];
    if (pipe(ends)) return;
    const pid_t child = fork();
    if (child == 0) {
        std::string answer;
        try {
            Driver driver(library);
            CUtexObject handle = make_handle(driver);
            CUmodule module = driver.load(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f(.param .u64 t, .param .u64 o)\n{\n"
                ".reg .b64 %d<4>; .reg .b32 %r<8>; .reg .b64 %w<4>; .reg .pred %p;\nld.param.u64 %d0, [t]; ld.param.u64 %d1, [o];\n"
                "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;\n" + body +
                "\nst.global.v4.b32 [%d1], {%r0, %r1, %r2, %r3};\nret;\n}\n");
            CUfunction function = nullptr;
            driver.call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "f");
            unsigned values[4] = {};
            CUdeviceptr result = driver.upload(values, 16);
            void* parameters[] = {&handle, &result};
            driver.launch(function, 1, 1, parameters);
            driver.call("cuCtxSynchronize");
            driver.call("cuMemcpyDtoH_v2", static_cast<void*>(values), result, std::size_t{16});
            char text[64];
            std::snprintf(text, sizeof text, "%08x %08x %08x %08x", values[0], values[1], values[2], values[3]);
            answer = text;
        } catch (const std::exception& error) {
            answer = error.what();
        }
        const ssize_t written = write(ends[1], answer.data(), answer.size());
        _exit(written < 0);
    }
    close(ends[1]);
    char text[300];
    std::string answer;
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;) answer.append(text, std::size_t(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) answer = "signal " + std::to_string(WTERMSIG(status));
    out << "fault " << what << ": " << answer << '\n';
}

void faults(const char* library) {
    const auto plane = [](Driver& driver, unsigned flags, bool surface, unsigned channels = 4) {
        CUDA_RESOURCE_DESC resource{};
        resource.res.array.hArray = make(driver, {16, 8, 0, 32, channels, flags});
        std::vector<unsigned> texels(std::size_t{16} * 8 * channels);
        for (unsigned i = 0; i < texels.size(); ++i) texels[i] = i + 1;
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = 1;
        copy.srcHost = texels.data();
        copy.dstMemoryType = 3;
        copy.dstArray = resource.res.array.hArray;
        copy.WidthInBytes = copy.srcPitch = std::size_t{64} * channels;
        copy.Height = 8;
        driver.call("cuMemcpy2D_v2", static_cast<const CUDA_MEMCPY2D*>(&copy));
        CUtexObject object = 0;
        CUDA_TEXTURE_DESC sampler{};
        if (surface) driver.call("cuSurfObjectCreate", &object, &resource);
        else driver.call<CUtexObject*, CUDA_RESOURCE_DESC*, CUDA_TEXTURE_DESC*, void*>("cuTexObjectCreate", &object, &resource, &sampler, nullptr);
        return object;
    };
    const std::string fetch = "tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1}];";
    const std::string load = "suld.b.2d.b32.trap %r0, [%d0, {%r0, %r1}];";
    fault(library, "tex of a texture", fetch, [&](Driver& d) { return plane(d, 2, false); });
    fault(library, "tex of 0", fetch, [](Driver&) { return CUtexObject{0}; });
    fault(library, "tex of 1000", fetch, [](Driver&) { return CUtexObject{1000}; });
    fault(library, "tex of 2^40", fetch, [](Driver&) { return CUtexObject{1} << 40; });
    fault(library, "tex of all ones", fetch, [](Driver&) { return ~CUtexObject{0}; });
    fault(library, "tex of a destroyed texture", fetch, [&](Driver& d) { CUtexObject o = plane(d, 2, false); d.call("cuTexObjectDestroy", o); return o; });
    fault(library, "tex of a surface", fetch, [&](Driver& d) { return plane(d, 2, true); });
    fault(library, "tex.3d of a 2d texture", "tex.3d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1, %r2, %r3}];", [&](Driver& d) { return plane(d, 2, false); });
    fault(library, "tex.a2d of a 2d texture", "tex.a2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1, %r2, %r3}];", [&](Driver& d) { return plane(d, 2, false); });
    fault(library, "tex.1d of a 2d texture", "tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%r0}];", [&](Driver& d) { return plane(d, 2, false); });
    fault(library, "tex.cube of a 2d texture", "tex.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d0, {%r0, %r1, %r2, %r3}];", [&](Driver& d) { return plane(d, 2, false); });
    fault(library, "suld of a surface", load, [&](Driver& d) { return plane(d, 2, true); });
    fault(library, "suld of 0", load, [](Driver&) { return CUtexObject{0}; });
    fault(library, "suld of 1000", load, [](Driver&) { return CUtexObject{1000}; });
    fault(library, "suld of a texture", load, [&](Driver& d) { return plane(d, 2, false); });
    fault(library, "suld of a destroyed surface", load, [&](Driver& d) { CUtexObject o = plane(d, 2, true); d.call("cuSurfObjectDestroy", o); return o; });
    fault(library, "suld.1d of a 2d surface", "suld.b.1d.b32.trap %r0, [%d0, {%r0}];", [&](Driver& d) { return plane(d, 2, true); });
    fault(library, "suld.3d of a 2d surface", "suld.b.3d.b32.trap %r0, [%d0, {%r0, %r1, %r2, %r3}];", [&](Driver& d) { return plane(d, 2, true); });
    for (const char* bounds : {"trap", "clamp", "zero"}) {
        const std::string tail = std::string(".") + bounds;
        for (const char* x : {"-4", "2", "254", "256"})
            fault(library, "suld.b32" + tail + " x " + x, "mov.b32 %r0, " + std::string(x) + "; suld.b.2d.b32" + tail + " %r0, [%d0, {%r0, %r1}];",
                  [&](Driver& d) { return plane(d, 2, true); });
        fault(library, "sust.b32" + tail + " x -4", "mov.b32 %r0, -4; sust.b.2d.b32" + tail + " [%d0, {%r0, %r1}], %r2;", [&](Driver& d) { return plane(d, 2, true); });
        fault(library, "sust.b32" + tail + " y 8", "mov.b32 %r1, 8; sust.b.2d.b32" + tail + " [%d0, {%r0, %r1}], %r2;", [&](Driver& d) { return plane(d, 2, true); });
        fault(library, "sured" + tail + " y 8", "mov.b32 %r1, 8; sured.b.add.2d.u32" + tail + " [%d0, {%r0, %r1}], %r2;", [&](Driver& d) { return plane(d, 2, true, 1); });
    }
    fault(library, "sured of f32x4", "sured.b.add.2d.u32.trap [%d0, {%r0, %r1}], %r2;", [&](Driver& d) { return plane(d, 2, true); });
    for (const char* type : {"texref", "surfref", "samplerref"})
        for (int kind : {0, 1, 2, 3})
            fault(library, std::string("istypep.") + type + (kind == 0 ? " of a texture" : kind == 1 ? " of a surface" : kind == 2 ? " of 0" : " of 1000"),
                  std::string("istypep.") + type + " %p, %d0; selp.b32 %r0, 1, 0, %p;",
                  [&](Driver& d) { return kind == 0 ? plane(d, 2, false) : kind == 1 ? plane(d, 2, true) : CUtexObject(kind == 2 ? 0 : 1000); });
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    try {
        faults(argv[1]);
        Driver driver(argv[1]);
        arrays(driver);
        mipmaps(driver);
        textures(driver);
        surfaces(driver);
        copies(driver);
        all_queries(driver);
    } catch (const std::exception& error) {
        out << "ended: " << error.what() << '\n';
    }
    if (argc < 3) {
        std::printf("%s", out.str().c_str());
        return 0;
    }
    std::ifstream file(argv[2]);
    std::istringstream ours(out.str());
    unsigned failed = 0, line = 0;
    for (std::string mine, recorded; std::getline(file, recorded);) {
        ++line;
        std::getline(ours, mine);
        const bool differs = recorded.starts_with("~");
        if ((mine == recorded.substr(differs ? 1 : 0)) != differs) continue;
        ++failed;
        std::printf("line %u: %s\n     got: %s\n", line, recorded.c_str(), mine.c_str());
    }
    std::printf("%u lines, %u failed\n", line, failed);
    return failed != 0;
}
