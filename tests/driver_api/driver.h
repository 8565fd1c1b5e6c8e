// SPDX-License-Identifier: Apache-2.0
// The driver API as these tests call it, and the context and kernels that most of them share.
#pragma once

#include "runtime/shim/cuda_types.h"

#include <catch2/catch.hpp>

#include <string>

extern "C" {
CUresult cuInit(unsigned);
CUresult cuDriverGetVersion(int*);
CUresult cuGetProcAddress_v2(const char*, void**, int, std::uint64_t, int*);
CUresult cuGetExportTable(const void**, const CUuuid*);
CUresult cuGetErrorName(int, const char**);
CUresult cuGetErrorString(int, const char**);
CUresult cuDeviceGet(CUdevice*, int);
CUresult cuDeviceGetCount(int*);
CUresult cuDeviceGetName(char*, int, CUdevice);
CUresult cuDeviceGetAttribute(int*, int, CUdevice);
CUresult cuDeviceTotalMem_v2(std::size_t*, CUdevice);
CUresult cuDeviceGetUuid(CUuuid*, CUdevice);
CUresult cuDeviceGetPCIBusId(char*, int, CUdevice);
CUresult cuDeviceGetByPCIBusId(CUdevice*, const char*);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned*, int*);
CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);
CUresult cuCtxAttach(CUcontext*, unsigned);
CUresult cuCtxDetach(CUcontext);
CUresult cuCtxCreate_v3(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);
CUresult cuCtxCreate_v4(CUcontext*, const CUctxCreateParams*, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext*);
CUresult cuCtxPopCurrent_v2(CUcontext*);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxGetDevice(CUdevice*);
CUresult cuCtxGetLimit(std::size_t*, int);
CUresult cuCtxSetLimit(int, std::size_t);
CUresult cuCtxSynchronize();
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemAllocPitch_v2(CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemGetInfo_v2(std::size_t*, std::size_t*);
CUresult cuMemGetAddressRange_v2(CUdeviceptr*, std::size_t*, CUdeviceptr);
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, std::size_t);
CUresult cuMemCreate(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, std::size_t);
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
CUresult cuMemHostAlloc(void**, std::size_t, unsigned);
CUresult cuMemFreeHost(void*);
CUresult cuMemHostRegister_v2(void*, std::size_t, unsigned);
CUresult cuMemHostUnregister(void*);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr*, void*, unsigned);
CUresult cuMemAllocManaged(CUdeviceptr*, std::size_t, unsigned);
CUresult cuMemAllocAsync(CUdeviceptr*, std::size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemcpy(CUdeviceptr, CUdeviceptr, std::size_t);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, std::size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);
CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, std::size_t);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D*);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D*);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, std::size_t);
CUresult cuMemsetD16_v2(CUdeviceptr, unsigned short, std::size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, std::size_t);
CUresult cuMemsetD2D8_v2(CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t);
CUresult cuPointerGetAttribute(void*, unsigned, CUdeviceptr);
CUresult cuStreamCreate(CUstream*, unsigned);
CUresult cuStreamCreateWithPriority(CUstream*, unsigned, int);
CUresult cuStreamGetAttribute(CUstream, unsigned, CUlaunchAttributeValue*);
CUresult cuStreamSetAttribute(CUstream, unsigned, const CUlaunchAttributeValue*);
CUresult cuStreamCopyAttributes(CUstream, CUstream);
CUresult cuStreamGetGreenCtx(CUstream, void**);
CUresult cuStreamGetId(CUstream, unsigned long long*);
CUresult cuStreamGetPriority(CUstream, int*);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void*);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuEventCreate(CUevent*, unsigned);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime_v2(float*, CUevent, CUevent);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleLoadDataEx(CUmodule*, const void*, unsigned, unsigned*, void**);
CUresult cuModuleLoad(CUmodule*, const char*);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuModuleGetFunctionCount(unsigned*, CUmodule);
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, std::size_t*, CUmodule, const char*);
CUresult cuLibraryLoadFromFile(CUlibrary*, const char*, unsigned*, void**, unsigned, unsigned*, void**, unsigned);
CUresult cuLibraryLoadData(CUlibrary*, const void*, unsigned*, void**, unsigned, unsigned*, void**,
                           unsigned);
CUresult cuModuleEnumerateFunctions(CUfunction*, unsigned, CUmodule);
CUresult cuFuncLoad(CUfunction);
CUresult cuLibraryUnload(CUlibrary);
CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*);
CUresult cuLibraryGetKernelCount(unsigned*, CUlibrary);
CUresult cuLibraryGetGlobal(CUdeviceptr*, std::size_t*, CUlibrary, const char*);
CUresult cuLibraryGetModule(CUmodule*, CUlibrary);
CUresult cuKernelGetFunction(CUfunction*, CUkernel);
CUresult cuKernelGetAttribute(int*, int, CUkernel, CUdevice);
CUresult cuFuncGetAttribute(int*, int, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuFuncGetParamInfo(CUfunction, std::size_t, std::size_t*, std::size_t*);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**);
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, CUfunction, int, std::size_t);
CUresult cuOccupancyMaxActiveClusters(int*, CUfunction, const CUlaunchConfig*);
CUresult cuStreamBeginRecaptureToGraph();
}

namespace driver_test {

/// Kernels: add_one(u32* data, u32 count); store(u32* where, u32 value); store_far(u64 address),
/// trap(); variables: `counter` (u32, 7), `table` (const u32[4] = 1 2 3 4).
extern const char* const kernels;

/// The primary context, current on this thread; made once.
CUcontext context();
/// A kernel of `kernels` in a module that stays loaded.
CUfunction function(const char* name);
/// cuMemAlloc that must succeed.
CUdeviceptr allocate(std::size_t size);

} // namespace driver_test
