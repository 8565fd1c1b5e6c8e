// SPDX-License-Identifier: Apache-2.0
#include "current_context_calls.h"

#include "answers.h"

using answers::call;
using answers::must;

namespace {

const char* const text = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .global .u32 variable;
.visible .entry k(.param .u64 to) {
    .reg .b64 %a;
    ld.param.u64 %a, [to];
    st.global.u32 [%a], 7;
    ret;
}
)";

const CUDA_ARRAY3D_DESCRIPTOR cube = {16, 16, 0, 0x03, 1, 2}; // 32-bit words, for surfaces

CUDA_RESOURCE_DESC array_resource(CUarray array) {
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    return resource;
}

void nothing(void*) {}
void nothing_of_stream(CUstream, CUresult, void*) {}

// What calls write to.
int number, numbers[16];
unsigned count;
unsigned long long id;
std::size_t size, total;
const char* name;
float milliseconds;
void* pointer;
CUdeviceptr address;
CUcontext context;
CUdevice device;
CUmemoryPool pool;
char bytes[4096];

class Table {
public:
    /// `what` tells calls of one entry apart.
    template <class... Arguments> void ask(const char* entry, const std::string& what, Arguments... arguments) {
        calls.push_back({what.empty() ? entry : entry + (" " + what), [=] { return call(entry, arguments...); }});
    }
    std::vector<Call> calls;
};

struct NamedStream {
    CUstream handle;
    const char* name;
};
std::vector<NamedStream> streams(const Objects& o) {
    return {{o.stream, "stream"},
            {nullptr, "null"},
            {reinterpret_cast<CUstream>(1), "legacy"},
            {reinterpret_cast<CUstream>(2), "per_thread"}};
}

void ask_contexts(Table& t, Objects& o) {
    const CUcontext none = nullptr;
    t.ask("cuCtxGetCurrent", "", &context);
    t.ask("cuCtxGetDevice", "", &device);
    t.ask("cuCtxGetDevice_v2", "null", &device, none);
    t.ask("cuCtxGetDevice_v2", "context", &device, o.context);
    t.ask("cuCtxGetFlags", "", &count);
    t.ask("cuCtxGetId", "null", none, &id);
    t.ask("cuCtxGetId", "context", o.context, &id);
    t.ask("cuCtxGetApiVersion", "null", none, &count);
    t.ask("cuCtxGetApiVersion", "context", o.context, &count);
    t.ask("cuCtxGetLimit", "", &size, 0);
    t.ask("cuCtxSetLimit", "", 0, std::size_t{1024});
    t.ask("cuCtxGetCacheConfig", "", &number);
    t.ask("cuCtxSetCacheConfig", "", 0);
    t.ask("cuCtxGetSharedMemConfig", "", &number);
    t.ask("cuCtxGetStreamPriorityRange", "", &numbers[0], &numbers[1]);
    t.ask("cuCtxResetPersistingL2Cache", "");
    t.ask("cuCtxSynchronize", "");
    t.ask("cuCtxSynchronize_v2", "null", none);
    t.ask("cuCtxSynchronize_v2", "context", o.context);
    t.ask("cuCtxPopCurrent_v2", "", &context);
    t.ask("cuCtxPushCurrent_v2", "context", o.context);
    t.ask("cuCtxSetCurrent", "context", o.context);
    t.ask("cuCtxSetCurrent", "null", none);
    t.ask("cuCtxEnablePeerAccess", "context", o.context, 0u);
    t.ask("cuCtxDisablePeerAccess", "context", o.context);
    t.ask("cuProfilerStart", "");
    t.ask("cuProfilerStop", "");
    t.ask("cuDeviceGetAttribute", "", &number, 16, 0);
    t.ask("cuDevicePrimaryCtxGetState", "", 0, &count, &number);
    t.ask("cuThreadExchangeStreamCaptureMode", "", &(numbers[15] = 1));
    t.ask("cuModuleGetLoadingMode", "", &number);
}

void ask_memory(Table& t, Objects& o) {
    const std::size_t small = 4096;
    const void* const from = bytes;
    t.ask("cuMemAlloc_v2", "", &address, small);
    t.ask("cuMemAllocPitch_v2", "", &address, &size, small, small, 4u);
    t.ask("cuMemAllocManaged", "", &address, small, 1u);
    t.ask("cuMemHostAlloc", "", &pointer, small, 0u);
    t.ask("cuMemAllocHost_v2", "", &pointer, small);
    t.ask("cuMemGetInfo_v2", "", &size, &total);
    t.ask("cuMemGetAddressRange_v2", "", &address, &size, o.memory);
    t.ask("cuMemGetAddressRange_v2", "unknown", &address, &size, CUdeviceptr{0x1234});
    t.ask("cuMemHostRegister_v2", "", static_cast<void*>(bytes), std::size_t{64}, 0u);
    t.ask("cuMemHostUnregister", "", o.registered);
    t.ask("cuMemHostUnregister", "unknown", static_cast<void*>(&number));
    t.ask("cuMemHostGetDevicePointer_v2", "", &address, o.host, 0u);
    t.ask("cuMemHostGetDevicePointer_v2", "unknown", &address, static_cast<void*>(&number), 0u);
    t.ask("cuMemHostGetFlags", "", &count, o.host);
    t.ask("cuMemHostGetFlags", "unknown", &count, static_cast<void*>(&number));
    t.ask("cuPointerGetAttribute", "memory type", static_cast<void*>(&number), 2, o.memory);
    t.ask("cuPointerGetAttribute", "context", static_cast<void*>(&context), 1, o.memory);
    t.ask("cuPointerGetAttribute", "device pointer", static_cast<void*>(&address), 3, o.memory);
    t.ask("cuPointerGetAttribute", "unknown", static_cast<void*>(&number), 2, CUdeviceptr{0x1234});
    static int kinds[] = {2, 9};
    static void* places[] = {&number, &device};
    t.ask("cuPointerGetAttributes", "", 2u, &kinds[0], &places[0], o.memory);
    t.ask("cuPointerGetAttributes", "unknown", 2u, &kinds[0], &places[0], CUdeviceptr{0x1234});
    static int one = 1;
    t.ask("cuPointerSetAttribute", "", static_cast<const void*>(&one), 6, o.memory);
    t.ask("cuMemAdvise_v2", "", o.managed, small, 1, CUmemLocation{1, 0});
    t.ask("cuMemRangeGetAttribute", "", static_cast<void*>(&number), std::size_t{4}, 1, o.managed, small);
    t.ask("cuMemcpy", "", o.memory, o.managed, small);
    t.ask("cuMemcpyHtoD_v2", "", o.memory, from, small);
    t.ask("cuMemcpyHtoD_v2", "of nothing", o.memory, from, std::size_t{0});
    t.ask("cuMemcpyDtoH_v2", "", static_cast<void*>(bytes), o.memory, small);
    t.ask("cuMemcpyDtoD_v2", "", o.memory, o.pooled, small);
    t.ask("cuMemcpyPeer", "", o.memory, o.context, o.pooled, o.context, small);
    t.ask("cuMemsetD8_v2", "", o.memory, static_cast<unsigned char>(1), small);
    t.ask("cuMemsetD32_v2", "of nothing", o.memory, 1u, std::size_t{0});
    static CUDA_MEMCPY2D box{};
    box = {};
    box.srcMemoryType = 1, box.srcHost = bytes, box.dstMemoryType = 2, box.dstDevice = o.memory;
    box.WidthInBytes = 16, box.Height = 2;
    const CUDA_MEMCPY2D* const boxed = &box;
    t.ask("cuMemcpy2D_v2", "", boxed);
    t.ask("cuMemcpyHtoA_v2", "", o.array, std::size_t{0}, from, std::size_t{64});
    t.ask("cuMemcpyAtoH_v2", "", static_cast<void*>(bytes), o.array, std::size_t{0}, std::size_t{64});
    for (const NamedStream& s : streams(o)) {
        t.ask("cuMemcpyAsync", s.name, o.memory, o.managed, small, s.handle);
        t.ask("cuMemcpyHtoDAsync_v2", s.name, o.memory, from, small, s.handle);
        t.ask("cuMemcpyDtoHAsync_v2", s.name, o.host, o.memory, small, s.handle);
        t.ask("cuMemcpyDtoDAsync_v2", s.name, o.memory, o.pooled, small, s.handle);
        t.ask("cuMemcpyPeerAsync", s.name, o.memory, o.context, o.pooled, o.context, small, s.handle);
        t.ask("cuMemcpy2DAsync_v2", s.name, boxed, s.handle);
        t.ask("cuMemcpyHtoAAsync_v2", s.name, o.array, std::size_t{0}, from, std::size_t{64}, s.handle);
        t.ask("cuMemsetD8Async", s.name, o.memory, static_cast<unsigned char>(1), small, s.handle);
        t.ask("cuMemsetD2D32Async", s.name, o.memory, std::size_t{64}, 1u, std::size_t{4}, std::size_t{4}, s.handle);
        t.ask("cuMemPrefetchAsync_v2", s.name, o.managed, small, CUmemLocation{1, 0}, 0u, s.handle);
        t.ask("cuMemAllocAsync", s.name, &address, small, s.handle);
        t.ask("cuMemAllocFromPoolAsync", s.name, &address, small, o.pool, s.handle);
    }
    t.ask("cuMemFreeAsync", "null", o.spare_pooled, CUstream{});
    t.ask("cuMemFreeAsync", "stream", o.pooled, o.stream);
    t.ask("cuMemFree_v2", "memory", o.spare_memory);
    t.ask("cuMemFree_v2", "managed", o.spare_managed);
    t.ask("cuMemFree_v2", "pooled", o.spare_pooled);
    t.ask("cuMemFree_v2", "null", CUdeviceptr{0});
    t.ask("cuMemFree_v2", "unknown", CUdeviceptr{0x1234});
    t.ask("cuMemFreeHost", "host", o.spare_host);
    t.ask("cuMemFreeHost", "null", static_cast<void*>(nullptr));
    t.ask("cuMemFreeHost", "unknown", static_cast<void*>(&number));
    t.ask("cuDeviceGetDefaultMemPool", "", &pool, 0);
    t.ask("cuDeviceGetMemPool", "", &pool, 0);
    t.ask("cuMemPoolGetAttribute", "", o.pool, 4, static_cast<void*>(&id));
    t.ask("cuMemPoolTrimTo", "", o.pool, std::size_t{0});
    t.ask("cuMemPoolDestroy", "", o.spare_pool);
    static CUmemPoolProps properties{};
    properties.allocType = 1, properties.location = {1, 0};
    t.ask("cuMemPoolCreate", "", &pool, const_cast<const CUmemPoolProps*>(&properties));
}

void ask_streams(Table& t, Objects& o) {
    static void* const none = nullptr;
    t.ask("cuStreamCreate", "", &pointer, 1u);
    t.ask("cuStreamCreateWithPriority", "", &pointer, 1u, 0);
    t.ask("cuEventCreate", "", &pointer, 0u);
    for (const NamedStream& s : streams(o)) {
        t.ask("cuStreamSynchronize", s.name, s.handle); // before the query, which could come too early
        t.ask("cuStreamQuery", s.name, s.handle);
        t.ask("cuStreamGetPriority", s.name, s.handle, &number);
        t.ask("cuStreamGetFlags", s.name, s.handle, &count);
        t.ask("cuStreamGetId", s.name, s.handle, &id);
        t.ask("cuStreamGetCtx", s.name, s.handle, &context);
        t.ask("cuStreamGetDevice", s.name, s.handle, &device);
        t.ask("cuStreamIsCapturing", s.name, s.handle, &number);
        t.ask("cuStreamGetCaptureInfo_v2", s.name, s.handle, &number, &id, none, none, none);
        t.ask("cuStreamGetAttribute", s.name, s.handle, 3u, static_cast<void*>(bytes));
        t.ask("cuStreamCopyAttributes", s.name, s.handle, o.stream);
        t.ask("cuStreamAddCallback", s.name, s.handle, nothing_of_stream, none, 0u);
        t.ask("cuLaunchHostFunc", s.name, s.handle, nothing, none);
        t.ask("cuEventRecord", s.name, o.event, s.handle);
        t.ask("cuEventRecordWithFlags", s.name, o.event, s.handle, 0u);
        t.ask("cuStreamWaitEvent", s.name, s.handle, o.event, 0u);
    }
    t.ask("cuStreamSynchronize_ptsz", "null", CUstream{});
    t.ask("cuEventSynchronize", "", o.event);
    t.ask("cuEventQuery", "", o.event);
    t.ask("cuEventRecord", "later in stream", o.later, o.stream);
    t.ask("cuEventSynchronize", "later", o.later);
    t.ask("cuEventElapsedTime", "", &milliseconds, o.event, o.later);
    t.ask("cuEventDestroy_v2", "", o.spare_event);
    t.ask("cuStreamDestroy_v2", "", o.spare_stream);
}

void ask_code(Table& t, Objects& o) {
    const CUstream null = nullptr;
    t.ask("cuModuleLoadData", "", &pointer, static_cast<const void*>(text));
    t.ask("cuModuleGetFunction", "", &pointer, o.module, "k");
    t.ask("cuModuleGetFunction", "missing", &pointer, o.module, "missing");
    t.ask("cuModuleGetFunctionCount", "", &count, o.module);
    t.ask("cuModuleEnumerateFunctions", "", &pointer, 1u, o.module);
    t.ask("cuModuleGetGlobal_v2", "", &address, &size, o.module, "variable");
    t.ask("cuModuleGetTexRef", "missing", &pointer, o.module, "missing");
    t.ask("cuModuleUnload", "", o.spare_module);
    t.ask("cuLibraryLoadData", "", &pointer, static_cast<const void*>(text), nullptr, nullptr, 0u, nullptr, nullptr, 0u);
    t.ask("cuLibraryGetKernel", "", &pointer, o.library, "k");
    t.ask("cuLibraryGetKernelCount", "", &count, o.library);
    t.ask("cuLibraryGetGlobal", "", &address, &size, o.library, "variable");
    t.ask("cuLibraryGetManaged", "missing", &address, &size, o.library, "missing");
    t.ask("cuLibraryGetModule", "", &pointer, o.library);
    t.ask("cuKernelGetFunction", "", &pointer, o.kernel);
    t.ask("cuKernelGetAttribute", "", &number, 0, o.kernel, 0);
    t.ask("cuKernelSetAttribute", "", 8, 1024, o.kernel, 0);
    t.ask("cuKernelGetName", "", &name, o.kernel);
    t.ask("cuKernelGetParamInfo", "", o.kernel, std::size_t{0}, &size, &total);
    t.ask("cuKernelSetCacheConfig", "", o.kernel, 0, 0);
    t.ask("cuFuncGetAttribute", "", &number, 0, o.function);
    t.ask("cuFuncGetAttribute", "of kernel", &number, 0, o.kernel);
    t.ask("cuFuncSetAttribute", "", o.function, 8, 1024);
    t.ask("cuFuncSetCacheConfig", "", o.function, 0);
    t.ask("cuFuncGetName", "", &name, o.function);
    t.ask("cuFuncGetModule", "", &pointer, o.function);
    t.ask("cuFuncGetParamInfo", "", o.function, std::size_t{0}, &size, &total);
    t.ask("cuFuncIsLoaded", "", &number, o.function);
    t.ask("cuFuncLoad", "", o.function);
    t.ask("cuOccupancyMaxActiveBlocksPerMultiprocessor", "", &number, o.function, 128, std::size_t{0});
    t.ask("cuOccupancyMaxActiveBlocksPerMultiprocessor", "of kernel", &number, o.kernel, 128, std::size_t{0});
    t.ask("cuOccupancyMaxPotentialBlockSize", "", &numbers[0], &numbers[1], o.function, CUoccupancyB2DSize{}, std::size_t{0}, 0);
    t.ask("cuOccupancyAvailableDynamicSMemPerBlock", "", &size, o.function, 1, 128);
    static void* parameters[] = {nullptr};
    static CUdeviceptr to = 0;
    to = o.memory;
    parameters[0] = &to;
    void** const extra = nullptr;
    static CUlaunchConfig configs[4];
    for (const NamedStream& s : streams(o)) {
        t.ask("cuLaunchKernel", s.name, o.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s.handle, &parameters[0], extra);
        t.ask("cuLaunchKernel", std::string("of kernel, ") + s.name, o.kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s.handle, &parameters[0], extra);
        t.ask("cuLaunchCooperativeKernel", s.name, o.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s.handle, &parameters[0]);
        CUlaunchConfig& config = configs[s.handle == o.stream ? 3 : reinterpret_cast<std::uintptr_t>(s.handle)];
        config = {1, 1, 1, 1, 1, 1, 0, s.handle, nullptr, 0};
        t.ask("cuLaunchKernelEx", s.name, const_cast<const CUlaunchConfig*>(&config), o.function, &parameters[0], extra);
    }
    t.ask("cuLaunchKernel_ptsz", "null", o.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, null, &parameters[0], extra);
    t.ask("cuFuncSetBlockShape", "", o.function, 1, 1, 1);
    t.ask("cuFuncSetSharedSize", "", o.function, 0u);
    t.ask("cuParamSetSize", "", o.function, 8u);
    t.ask("cuParamSetv", "", o.function, 0, static_cast<void*>(&to), 8u);
    t.ask("cuParamSeti", "", o.function, 0, 0u);
    t.ask("cuParamSetv", "again", o.function, 0, static_cast<void*>(&to), 8u);
    t.ask("cuLaunchGridAsync", "stream", o.function, 1, 1, o.stream);
    t.ask("cuLaunchGridAsync", "null", o.function, 1, 1, null);
    t.ask("cuLaunchGrid", "", o.function, 1, 1);
    t.ask("cuLaunch", "", o.function);
    t.ask("cuLinkCreate_v2", "", 0u, nullptr, nullptr, &pointer);
    t.ask("cuLibraryUnload", "", o.spare_library);
}

void ask_textures(Table& t, Objects& o) {
    static CUDA_RESOURCE_DESC resource, got;
    static CUDA_TEXTURE_DESC sampler, got_sampler;
    resource = array_resource(o.array);
    const CUDA_RESOURCE_DESC* const given = &resource;
    t.ask("cuArray3DCreate_v2", "", &pointer, const_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&cube));
    static CUDA_ARRAY3D_DESCRIPTOR shape;
    t.ask("cuArray3DGetDescriptor_v2", "", &shape, o.array);
    t.ask("cuMipmappedArrayCreate", "", &pointer, const_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&cube), 2u);
    t.ask("cuMipmappedArrayGetLevel", "", &pointer, o.mipmap, 1u);
    t.ask("cuTexObjectCreate", "", &id, given, const_cast<const CUDA_TEXTURE_DESC*>(&sampler), nullptr);
    t.ask("cuTexObjectGetResourceDesc", "", &got, o.texture);
    t.ask("cuTexObjectGetTextureDesc", "", &got_sampler, o.texture);
    t.ask("cuSurfObjectCreate", "", &id, given);
    t.ask("cuSurfObjectGetResourceDesc", "", &got, o.surface);
    t.ask("cuTexObjectDestroy", "", o.spare_texture);
    t.ask("cuSurfObjectDestroy", "", o.spare_surface);
    t.ask("cuMipmappedArrayDestroy", "", o.spare_mipmap);
    t.ask("cuArrayDestroy", "", o.spare_array);
    t.ask("cuTexRefCreate", "", &pointer);
    static unsigned char map[192];
    void* const aligned = map + (64 - reinterpret_cast<std::uintptr_t>(map) % 64) % 64;
    static const std::uint64_t dims[] = {16, 16}, strides[] = {64};
    static const std::uint32_t boxes[] = {16, 16}, steps[] = {1, 1};
    t.ask("cuTensorMapEncodeTiled", "", aligned, 2, 2u, reinterpret_cast<void*>(o.memory), &dims[0], &strides[0],
          &boxes[0], &steps[0], 0, 0, 0, 0);
}

} // namespace

void Objects::prepare() {
    if (!context) {
        must("cuInit", 0u);
        must("cuCtxGetCurrent", &context);
        if (!context) must("cuDevicePrimaryCtxRetain", &context, 0);
        must("cuCtxSetCurrent", context);
    }
    for (CUstream* made : {&stream, &spare_stream}) must("cuStreamCreate", made, 1u);
    for (CUevent* made : {&event, &later, &spare_event}) must("cuEventCreate", made, 0u);
    must("cuEventRecord", event, stream);
    for (CUmodule* made : {&module, &spare_module}) must("cuModuleLoadData", made, static_cast<const void*>(text));
    must("cuModuleGetFunction", &function, module, "k");
    for (CUlibrary* made : {&library, &spare_library})
        must("cuLibraryLoadData", made, static_cast<const void*>(text), nullptr, nullptr, 0u, nullptr, nullptr, 0u);
    must("cuLibraryGetKernel", &kernel, library, "k");
    CUmemPoolProps properties{};
    properties.allocType = 1, properties.location = {1, 0};
    for (CUmemoryPool* made : {&this->pool, &spare_pool}) must("cuMemPoolCreate", made, const_cast<const CUmemPoolProps*>(&properties));
    for (CUdeviceptr* made : {&memory, &spare_memory}) must("cuMemAlloc_v2", made, std::size_t{4096});
    for (CUdeviceptr* made : {&pooled, &spare_pooled}) must("cuMemAllocAsync", made, std::size_t{4096}, stream);
    for (CUdeviceptr* made : {&managed, &spare_managed}) must("cuMemAllocManaged", made, std::size_t{4096}, 1u);
    for (void** made : {&host, &spare_host}) must("cuMemHostAlloc", made, std::size_t{4096}, 2u);
    registered = std::aligned_alloc(4096, 4096);
    must("cuMemHostRegister_v2", registered, std::size_t{4096}, 2u);
    for (CUarray* made : {&array, &spare_array}) must("cuArray3DCreate_v2", made, const_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&cube));
    for (CUmipmappedArray* made : {&mipmap, &spare_mipmap})
        must("cuMipmappedArrayCreate", made, const_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&cube), 2u);
    const CUDA_RESOURCE_DESC resource = array_resource(array);
    const CUDA_TEXTURE_DESC sampler{};
    for (CUtexObject* made : {&texture, &spare_texture}) must("cuTexObjectCreate", made, &resource, &sampler, nullptr);
    for (CUsurfObject* made : {&surface, &spare_surface}) must("cuSurfObjectCreate", made, &resource);
    must("cuCtxSynchronize");
}

std::vector<Call> context_calls(Objects& objects) {
    Table table;
    ask_contexts(table, objects);
    ask_memory(table, objects);
    ask_streams(table, objects);
    ask_code(table, objects);
    ask_textures(table, objects);
    return table.calls;
}
