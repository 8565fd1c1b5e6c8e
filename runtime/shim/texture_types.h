// SPDX-License-Identifier: Apache-2.0
// The driver API's types for arrays, textures and surfaces, see cuda_types.h.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUtexObject = unsigned long long;
using CUsurfObject = unsigned long long;
using CUtexref = struct CUtexref_st*;
using CUsurfref = struct CUsurfref_st*;

struct CUDA_ARRAY_DESCRIPTOR {
    std::size_t Width, Height;
    unsigned Format, NumChannels;
};

struct CUDA_ARRAY3D_DESCRIPTOR {
    std::size_t Width, Height, Depth;
    unsigned Format, NumChannels, Flags;
};

struct CUDA_RESOURCE_DESC {
    unsigned resType;
    union {
        struct {
            CUarray hArray;
        } array;
        struct {
            CUmipmappedArray hMipmappedArray;
        } mipmap;
        struct {
            unsigned long long devPtr;
            unsigned format, numChannels;
            std::size_t sizeInBytes;
        } linear;
        struct {
            unsigned long long devPtr;
            unsigned format, numChannels;
            std::size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned flags;
};

struct CUDA_TEXTURE_DESC {
    unsigned addressMode[3];
    unsigned filterMode, flags, maxAnisotropy, mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    float borderColor[4];
    int reserved[12];
};

struct CUDA_RESOURCE_VIEW_DESC {
    unsigned format;
    std::size_t width, height, depth;
    unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
    unsigned reserved[16];
};

} // extern "C"
