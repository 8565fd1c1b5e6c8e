// SPDX-License-Identifier: Apache-2.0
// The driver API's types as far as our entries touch them: handles, structs passed by pointer,
// enumerator values. Declared here so that building needs no NVIDIA header; tests/unit/shim
// compares them with cuda.h where it exists.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;

// Handles are pointers to runtime objects (see convert.h); the pointee types are never defined.
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*; ///< a CUkernel is accepted wherever this is taken
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUarray = struct CUarray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUlinkState = struct CUlinkState_st*;

using CUhostFn = void (*)(void*);
using CUstreamCallback = void (*)(CUstream, CUresult, void*);
using CUoccupancyB2DSize = std::size_t (*)(int);

struct CUuuid {
    char bytes[16];
};

struct CUdevprop {
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch, regsPerBlock, clockRate, textureAlign;
};

struct CUDA_MEMCPY2D {
    std::size_t srcXInBytes, srcY;
    unsigned srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    std::size_t srcPitch;
    std::size_t dstXInBytes, dstY;
    unsigned dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    std::size_t dstPitch;
    std::size_t WidthInBytes, Height;
};

struct CUDA_MEMCPY3D {
    std::size_t srcXInBytes, srcY, srcZ, srcLOD;
    unsigned srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void* reserved0;
    std::size_t srcPitch, srcHeight;
    std::size_t dstXInBytes, dstY, dstZ, dstLOD;
    unsigned dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void* reserved1;
    std::size_t dstPitch, dstHeight;
    std::size_t WidthInBytes, Height, Depth;
};

struct CUexecAffinityParam;
struct CUctxCigParam;
struct CUctxCreateParams {
    CUexecAffinityParam* execAffinityParams;
    int numExecAffinityParams;
    CUctxCigParam* cigParams;
};

struct CUaccessPolicyWindow {
    void* base_ptr;
    std::size_t num_bytes;
    float hitRatio;
    int hitProp, missProp;
};

struct CUlaunchMemSyncDomainMap {
    unsigned char default_, remote;
};

union CUlaunchAttributeValue {
    char pad[64];
    CUaccessPolicyWindow accessPolicyWindow;
    int syncPolicy;
    CUlaunchMemSyncDomainMap memSyncDomainMap;
    int memSyncDomain;
    struct {
        unsigned x, y, z;
    } clusterDim;
    int cooperative;
    int priority;
    int clusterSchedulingPolicyPreference;
    unsigned sharedMemCarveout, nvlinkUtilCentricScheduling;
    struct {
        CUevent event;
        int flags, triggerAtBlockStart;
    } programmaticEvent;
    struct {
        CUevent event;
        int flags;
    } launchCompletionEvent;
};

struct CUlaunchAttribute {
    unsigned id;
    char pad[4];
    CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute* attrs;
    unsigned numAttrs;
};

/// Of cuLaunchCooperativeKernelMultiDevice.
struct CUDA_LAUNCH_PARAMS {
    CUfunction function;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    CUstream hStream;
    void** kernelParams;
};

struct CUmemLocation {
    int type, id;
};

struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};

struct CUmemPoolProps {
    int allocType, handleTypes;
    CUmemLocation location;
    void* win32SecurityAttributes;
    std::size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};

using CUmemGenericAllocationHandle = unsigned long long;

struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void* win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};

struct CUmulticastObjectProp {
    unsigned numDevices;
    std::size_t size;
    unsigned long long handleTypes, flags;
};

struct CUcheckpointGpuPair {
    CUuuid oldUuid, newUuid;
};

struct CUcheckpointCheckpointArgs {
    void** customStorageInfo_out;
    char reserved[56];
};

struct CUcheckpointRestoreArgs {
    const CUcheckpointGpuPair* gpuPairs;
    unsigned gpuPairsCount, padding0;
    void** customStorageInfo_out;
    char reserved[40];
};

struct CUmemPoolPtrExportData {
    unsigned char reserved[64];
};

struct CUipcMemHandle {
    char reserved[64];
};

struct CUipcEventHandle {
    char reserved[64];
};

struct CUmemcpyAttributes {
    int srcAccessOrder;
    CUmemLocation srcLocHint, dstLocHint;
    unsigned flags;
};

struct CUmemcpy3DOperand {
    int type;
    union {
        struct {
            CUdeviceptr ptr;
            std::size_t rowLength, layerHeight;
            CUmemLocation locHint;
        } ptr;
        struct {
            CUarray array;
            std::size_t offset[3];
        } array;
    } op;
};

struct CUDA_MEMCPY3D_BATCH_OP {
    CUmemcpy3DOperand src, dst;
    std::size_t extent[3];
    int srcAccessOrder;
    unsigned flags;
};

struct CUDA_MEMCPY3D_PEER {
    std::size_t srcXInBytes, srcY, srcZ, srcLOD;
    unsigned srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    std::size_t srcPitch, srcHeight;
    std::size_t dstXInBytes, dstY, dstZ, dstLOD;
    unsigned dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    std::size_t dstPitch, dstHeight;
    std::size_t WidthInBytes, Height, Depth;
};

} // extern "C"

namespace ptarmigan::shim {

/// Version that cuDriverGetVersion reports, and the newest that cuGetProcAddress knows.
inline constexpr int driver_version = 13050;

/// cuGetProcAddress flags and the results it stores.
inline constexpr std::uint64_t proc_address_legacy_stream = 1, proc_address_per_thread_stream = 2;
enum ProcAddressResult : int { symbol_found = 0, symbol_unknown = 1, symbol_version_too_low = 2 };

/// Stream handles with a meaning of their own.
inline constexpr std::uintptr_t stream_legacy = 1, stream_per_thread = 2;

enum JitOption : unsigned {
    jit_max_registers = 0,
    jit_threads_per_block = 1,
    jit_wall_time = 2,
    jit_info_log_buffer = 3,
    jit_info_log_buffer_size = 4,
    jit_error_log_buffer = 5,
    jit_error_log_buffer_size = 6,
    jit_optimization_level = 7,
    jit_target_from_context = 8,
    jit_target = 9,
    jit_fallback_strategy = 10,
    jit_generate_debug_info = 11,
    jit_log_verbose = 12,
    jit_generate_line_info = 13,
    jit_cache_mode = 14,
};

enum LaunchAttributeId : unsigned {
    launch_ignore = 0,
    launch_access_policy_window = 1,
    launch_cooperative = 2,
    launch_synchronization_policy = 3,
    launch_cluster_dimension = 4,
    launch_cluster_scheduling = 5,
    launch_programmatic_serialization = 6,
    launch_programmatic_event = 7,
    launch_priority = 8,
    launch_mem_sync_domain_map = 9,
    launch_mem_sync_domain = 10,
    launch_preferred_cluster = 11,
    launch_completion_event = 12,
    launch_updatable_node = 13,
    launch_shared_carveout = 14,
    launch_nvlink_scheduling = 16,
};

enum MemoryType : unsigned { memory_host = 1, memory_device = 2, memory_array = 3, memory_unified = 4 };

enum PointerAttribute : unsigned {
    pointer_context = 1,
    pointer_memory_type = 2,
    pointer_device_pointer = 3,
    pointer_host_pointer = 4,
    pointer_p2p_tokens = 5,
    pointer_sync_memops = 6,
    pointer_buffer_id = 7,
    pointer_is_managed = 8,
    pointer_device_ordinal = 9,
    pointer_legacy_ipc = 10,
    pointer_range_start = 11,
    pointer_range_size = 12,
    pointer_mapped = 13,
    pointer_allowed_handles = 14,
    pointer_gpu_direct = 15,
    pointer_access_flags = 16,
    pointer_mempool = 17,
    pointer_mapping_size = 18,
    pointer_mapping_base = 19,
    pointer_block_id = 20,
    pointer_hw_decompress = 21,
};

} // namespace ptarmigan::shim
