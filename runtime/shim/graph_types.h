// SPDX-License-Identifier: Apache-2.0
// The driver API's types of graphs and stream capture, declared for the reason that cuda_types.h has; compared with
// cuda.h by the same test.
#pragma once

#include "runtime/shim/stream_types.h"

extern "C" {

using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUuserObject = struct CUuserObject_st*;
using CUgraphConditionalHandle = unsigned long long;

struct CUDA_KERNEL_NODE_PARAMS_v1 {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
};

struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
    CUkernel kern;
    CUcontext ctx;
};

struct CUDA_MEMSET_NODE_PARAMS {
    CUdeviceptr dst;
    std::size_t pitch;
    unsigned value;
    unsigned elementSize;
    std::size_t width;
    std::size_t height;
};

struct CUDA_MEMSET_NODE_PARAMS_v2 {
    CUdeviceptr dst;
    std::size_t pitch;
    unsigned value;
    unsigned elementSize;
    std::size_t width;
    std::size_t height;
    CUcontext ctx;
};

struct CUDA_HOST_NODE_PARAMS {
    CUhostFn fn;
    void* userData;
};

struct CUDA_MEMCPY_NODE_PARAMS {
    int flags, reserved;
    CUcontext copyCtx;
    CUDA_MEMCPY3D copyParams;
};

struct CUDA_CHILD_GRAPH_NODE_PARAMS {
    CUgraph graph;
    int ownership;
};

struct CUDA_EVENT_NODE_PARAMS { // CUDA_EVENT_RECORD_NODE_PARAMS, CUDA_EVENT_WAIT_NODE_PARAMS
    CUevent event;
};

struct CUDA_EXT_SEM_NODE_PARAMS { // CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS
    CUexternalSemaphore* extSemArray;
    const CUDA_EXTERNAL_SEMAPHORE_PARAMS* paramsArray;
    unsigned numExtSems;
};

struct CUDA_MEM_ALLOC_NODE_PARAMS {
    CUmemPoolProps poolProps;
    const CUmemAccessDesc* accessDescs;
    std::size_t accessDescCount;
    std::size_t bytesize;
    CUdeviceptr dptr;
};

struct CUDA_MEM_FREE_NODE_PARAMS {
    CUdeviceptr dptr;
};

struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUcontext ctx;
    unsigned count;
    CUstreamBatchMemOpParams* paramArray;
    unsigned flags;
};

struct CUDA_CONDITIONAL_NODE_PARAMS {
    CUgraphConditionalHandle handle;
    int type;
    unsigned size;
    CUgraph* phGraph_out;
    CUcontext ctx;
};

struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};

struct CUgraphNodeParams {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUDA_MEMCPY_NODE_PARAMS memcpy;
        CUDA_MEMSET_NODE_PARAMS_v2 memset;
        CUDA_HOST_NODE_PARAMS host;
        CUDA_CHILD_GRAPH_NODE_PARAMS graph;
        CUDA_EVENT_NODE_PARAMS event;
        CUDA_EXT_SEM_NODE_PARAMS semaphores;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUDA_MEM_FREE_NODE_PARAMS free;
        CUDA_BATCH_MEM_OP_NODE_PARAMS memOp;
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
    };
    long long reserved2;
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    std::uint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
};

struct CUgraphExecUpdateResultInfo {
    int result;
    CUgraphNode errorNode, errorFromNode;
};

} // extern "C"
