// SPDX-License-Identifier: Apache-2.0
// Compares our declarations of the driver API's types with NVIDIA's cuda.h, where that is
// installed. Both are included, ours inside a namespace, and nothing is linked from either.
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>

#if __has_include(<cuda.h>)
#include <cuda.h>
namespace ours {
#include "runtime/shim/cuda_types.h"
#include "runtime/shim/texture_types.h"
#include "runtime/shim/graph_types.h"
}

#define SAME_SIZE(type) static_assert(sizeof(::type) == sizeof(ours::type))
#define SAME_PLACE(type, member)                                                                   \
    static_assert(offsetof(::type, member) == offsetof(ours::type, member) &&                      \
                  sizeof(::type::member) == sizeof(ours::type::member))

SAME_SIZE(CUuuid);
SAME_SIZE(CUdevprop);
SAME_PLACE(CUdevprop, textureAlign);
SAME_SIZE(CUDA_MEMCPY2D);
SAME_PLACE(CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(CUDA_MEMCPY2D, dstXInBytes);
SAME_PLACE(CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(CUDA_MEMCPY2D, Height);
SAME_SIZE(CUDA_MEMCPY3D);
SAME_PLACE(CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(CUDA_MEMCPY3D, dstMemoryType);
SAME_PLACE(CUDA_MEMCPY3D, dstHeight);
SAME_PLACE(CUDA_MEMCPY3D, Depth);
SAME_SIZE(CUDA_ARRAY_DESCRIPTOR);
SAME_PLACE(CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(CUDA_ARRAY3D_DESCRIPTOR);
SAME_PLACE(CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(CUDA_RESOURCE_DESC);
SAME_PLACE(CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
SAME_PLACE(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
SAME_PLACE(CUDA_RESOURCE_DESC, flags);
SAME_SIZE(CUDA_TEXTURE_DESC);
SAME_PLACE(CUDA_TEXTURE_DESC, maxAnisotropy);
SAME_PLACE(CUDA_TEXTURE_DESC, borderColor);
SAME_SIZE(CUDA_RESOURCE_VIEW_DESC);
SAME_PLACE(CUDA_RESOURCE_VIEW_DESC, lastLayer);
SAME_SIZE(CUDA_KERNEL_NODE_PARAMS);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS, ctx);
SAME_SIZE(CUDA_MEMSET_NODE_PARAMS);
SAME_SIZE(CUDA_MEMSET_NODE_PARAMS_v2);
SAME_SIZE(CUDA_HOST_NODE_PARAMS);
SAME_SIZE(CUDA_MEMCPY_NODE_PARAMS);
SAME_PLACE(CUDA_MEMCPY_NODE_PARAMS, copyParams);
SAME_SIZE(CUDA_CHILD_GRAPH_NODE_PARAMS);
SAME_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS);
SAME_PLACE(CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME_SIZE(CUDA_MEM_FREE_NODE_PARAMS);
SAME_SIZE(CUstreamBatchMemOpParams);
SAME_SIZE(CUDA_BATCH_MEM_OP_NODE_PARAMS);
SAME_PLACE(CUDA_BATCH_MEM_OP_NODE_PARAMS, flags);
SAME_SIZE(CUDA_CONDITIONAL_NODE_PARAMS);
SAME_PLACE(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
SAME_SIZE(CUgraphEdgeData);
SAME_SIZE(CUgraphNodeParams);
SAME_PLACE(CUgraphNodeParams, kernel);
SAME_PLACE(CUgraphNodeParams, conditional);
SAME_PLACE(CUgraphNodeParams, reserved2);
SAME_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_PLACE(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
SAME_SIZE(CUgraphExecUpdateResultInfo);
SAME_SIZE(CUlaunchAttributeValue);
SAME_SIZE(CUlaunchAttribute);
SAME_PLACE(CUlaunchAttribute, value);
SAME_SIZE(CUlaunchConfig);
SAME_PLACE(CUlaunchConfig, hStream);
SAME_PLACE(CUlaunchConfig, numAttrs);
SAME_SIZE(CUmemLocation);
SAME_SIZE(CUmemPoolProps);
SAME_PLACE(CUmemPoolProps, location);
SAME_PLACE(CUmemPoolProps, maxSize);
SAME_PLACE(CUmemPoolProps, usage);
SAME_SIZE(CUmemGenericAllocationHandle);
SAME_SIZE(CUmemAllocationProp);
SAME_PLACE(CUmemAllocationProp, location);
SAME_PLACE(CUmemAllocationProp, allocFlags);
SAME_SIZE(CUmemPoolPtrExportData);
SAME_SIZE(CUcheckpointCheckpointArgs);
SAME_SIZE(CUcheckpointRestoreArgs);
SAME_PLACE(CUcheckpointRestoreArgs, gpuPairsCount);
SAME_SIZE(CUipcMemHandle);
SAME_SIZE(CUipcEventHandle);
SAME_SIZE(CUmemcpyAttributes);
SAME_PLACE(CUmemcpyAttributes, dstLocHint);
SAME_PLACE(CUmemcpyAttributes, flags);
SAME_SIZE(CUmemcpy3DOperand);
SAME_PLACE(CUmemcpy3DOperand, op);
SAME_SIZE(CUDA_MEMCPY3D_BATCH_OP);
SAME_PLACE(CUDA_MEMCPY3D_BATCH_OP, extent);
SAME_PLACE(CUDA_MEMCPY3D_BATCH_OP, flags);
SAME_SIZE(CUDA_MEMCPY3D_PEER);
SAME_PLACE(CUDA_MEMCPY3D_PEER, srcContext);
SAME_PLACE(CUDA_MEMCPY3D_PEER, dstContext);
SAME_PLACE(CUDA_MEMCPY3D_PEER, Depth);
SAME_PLACE(CUlaunchAttributeValue, clusterDim);
SAME_PLACE(CUlaunchAttributeValue, accessPolicyWindow);
SAME_PLACE(CUlaunchAttributeValue, syncPolicy);
SAME_PLACE(CUlaunchAttributeValue, memSyncDomainMap);
SAME_PLACE(CUlaunchAttributeValue, memSyncDomain);
SAME_SIZE(CUlaunchMemSyncDomainMap);
SAME_SIZE(CUaccessPolicyWindow);
SAME_PLACE(CUaccessPolicyWindow, hitRatio);
SAME_PLACE(CUaccessPolicyWindow, missProp);
SAME_SIZE(CUctxCreateParams);
SAME_PLACE(CUctxCreateParams, numExecAffinityParams);
SAME_PLACE(CUctxCreateParams, cigParams);
SAME_PLACE(CUlaunchAttributeValue, programmaticEvent);
SAME_PLACE(CUlaunchAttributeValue, launchCompletionEvent);

namespace shim = ours::ptarmigan::shim;
static_assert(int(shim::jit_error_log_buffer_size) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(int(shim::jit_wall_time) == CU_JIT_WALL_TIME &&
              int(shim::jit_cache_mode) == CU_JIT_CACHE_MODE);
static_assert(int(shim::launch_cluster_dimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(int(shim::launch_completion_event) == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
static_assert(int(shim::launch_shared_carveout) ==
              CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
static_assert(int(shim::memory_unified) == CU_MEMORYTYPE_UNIFIED);
static_assert(int(shim::pointer_block_id) == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
static_assert(int(shim::pointer_is_managed) == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(int(shim::symbol_version_too_low) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
static_assert(shim::driver_version / 1000 == CUDA_VERSION / 1000);

TEST_CASE("cuda types: sizes, places and values equal cuda.h's") {
    SUCCEED("compared at compile time");
}
#else
TEST_CASE("cuda types: not compared, cuda.h is not installed") { WARN("skipped: no cuda.h"); }
#endif
