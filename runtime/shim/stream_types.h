// SPDX-License-Identifier: Apache-2.0
// Types of stream memory operations, of what other processes and programs export, and of green contexts: see
// cuda_types.h.
#pragma once

#include "runtime/shim/cuda_types.h"

using CUgreenCtx = struct CUgreenCtx_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;
using CUexternalMemory = struct CUextMemory_st*;
using CUexternalSemaphore = struct CUextSemaphore_st*;

/// Which member counts is said by `operation`, with which all begin.
union CUstreamBatchMemOpParams {
    int operation;
    struct {
        int operation;
        CUdeviceptr address;
        std::uint64_t value; ///< the lower half of it for operations of 32 bits
        unsigned flags;
        CUdeviceptr alias;
    } value; ///< waits and writes
    struct {
        int operation;
        unsigned flags;
    } barrier; ///< and flushes
    std::uint64_t pad[6];
};
static_assert(sizeof(CUstreamBatchMemOpParams) == 48);

struct CUdevResource {
    int type; ///< 0: none, 1: multiprocessors
    unsigned char internal[92];
    union {
        struct {
            unsigned smCount, minSmPartitionSize, smCoscheduledAlignment, flags, localityDomainId;
        } sm;
        unsigned char oversize[48];
    };
};
static_assert(sizeof(CUdevResource) == 144);

struct CU_DEV_SM_RESOURCE_GROUP_PARAMS {
    unsigned smCount, coscheduledSmCount, preferredCoscheduledSmCount, flags, localityDomainId;
    unsigned reserved[11];
};
static_assert(sizeof(CU_DEV_SM_RESOURCE_GROUP_PARAMS) == 64);

struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
        const void* nvSciBufObject;
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    unsigned long long offset, size;
    unsigned flags;
    unsigned reserved[16];
};
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
        const void* nvSciSyncObj;
    } handle;
    unsigned flags;
    unsigned reserved[16];
};
/// Of signals and of waits: the values lie at the same places.
struct CUDA_EXTERNAL_SEMAPHORE_PARAMS {
    struct {
        struct {
            unsigned long long value;
        } fence;
        unsigned long long nvSciSync;
        struct {
            unsigned long long key;
            unsigned timeoutMs; ///< of waits
        } keyedMutex;
        unsigned reserved[10];
    } params;
    unsigned flags;
    unsigned reserved[16];
};
static_assert(sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) == 104);
static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_PARAMS) == 144);
