// SPDX-License-Identifier: Apache-2.0
// Objects of one device in calls of a thread whose current context is the other's; streams and events of both; graphs
// over both.
#include "two_devices.h"

#include "../answers/current_context_calls.h"

namespace devices {
namespace {

void ask_streams(const Told& told) {
    Both both;
    both.start();
    Side &a = both.at[0], &b = both.at[1];
    both.use(1);
    const std::size_t small = 64;
    CUdevice device = -5;
    CUcontext context{};
    told.give("device of stream 0", list({number(call("cuStreamGetDevice", a.stream, &device)), number(device)}));
    told.give("context of stream 0", list({number(call("cuStreamGetCtx", a.stream, &context)), both.name(context)}));
    told.give("device of the null stream", list({number(call("cuStreamGetDevice", CUstream{}, &device)), number(device)}));
    told.give("record 0 in 0", call("cuEventRecord", a.event, a.stream));
    told.give("record 0 in 1", call("cuEventRecord", a.event, b.stream));
    told.give("record 0 in null", call("cuEventRecord", a.event, CUstream{}));
    told.give("record 1 in 0", call("cuEventRecord", b.event, a.stream));
    told.give("record 1 in 1", call("cuEventRecord", b.event, b.stream));
    told.give("wait in 1 for 0", call("cuStreamWaitEvent", b.stream, a.event, 0u));
    told.give("wait in 0 for 1", call("cuStreamWaitEvent", a.stream, b.event, 0u));
    told.give("wait in null for 0", call("cuStreamWaitEvent", CUstream{}, a.event, 0u));
    must("cuEventSynchronize", a.event);
    must("cuEventSynchronize", b.event);
    float milliseconds = 0;
    told.give("elapsed 0 to 1", call("cuEventElapsedTime", &milliseconds, a.event, b.event));
    told.give("elapsed 1 to 0", call("cuEventElapsedTime", &milliseconds, b.event, a.event));
    told.give("query 0", call("cuEventQuery", a.event));
    CUdeviceptr to = a.memory;
    unsigned value = 3;
    void* parameters[] = {&to, &value};
    void** const extra = nullptr;
    const auto launch = [&](const std::string& of, CUfunction function, CUstream stream) {
        const int result = call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, &parameters[0], extra);
        told.give("launch " + of, list({number(result), number(call("cuStreamSynchronize", stream))}));
    };
    launch("function 0 in 0", a.put, a.stream);
    launch("function 0 in 1", a.put, b.stream);
    launch("function 0 in null", a.put, nullptr);
    launch("function 1 in 0", b.put, a.stream);
    // Kernels of a library go where the stream or the current context is.
    CUlibrary library{};
    CUkernel kernel{};
    must("cuLibraryLoadData", &library, static_cast<const void*>(text), nullptr, nullptr, 0u, nullptr, nullptr, 0u);
    must("cuLibraryGetKernel", &kernel, library, "put");
    const auto kernel_function = reinterpret_cast<CUfunction>(kernel);
    launch("kernel in 0", kernel_function, a.stream);
    to = b.memory;
    launch("kernel in 1", kernel_function, b.stream);
    launch("kernel in null", kernel_function, nullptr);
    CUfunction function{}, other{};
    must("cuKernelGetFunction", &function, kernel);
    both.use(0);
    must("cuKernelGetFunction", &other, kernel);
    told.give("functions differ", function != other);
    CUmodule module{}, own{};
    CUcontext of{};
    must("cuFuncGetModule", &module, function);
    must("cuLibraryGetModule", &own, library);
    told.give("modules differ", module != own);
    CUdeviceptr variable[2] = {};
    std::size_t size = 0;
    for (int i = 0; i < 2; ++i) {
        both.use(i);
        must("cuLibraryGetGlobal", &variable[i], &size, library, "variable");
        int ordinal = -5;
        must("cuPointerGetAttribute", static_cast<void*>(&ordinal), 9, variable[i]);
        told.give("ordinal of the library's variable, " + number(i), ordinal);
        must("cuPointerGetAttribute", static_cast<void*>(&of), 1, variable[i]);
        told.give("context of the library's variable, " + number(i), both.name(of));
    }
    told.give("variables differ", variable[0] != variable[1]);
    int attribute = 0;
    told.give("set attribute for 1", call("cuKernelSetAttribute", 8, 65536, kernel, 1));
    told.give("of 1", list({number(call("cuKernelGetAttribute", &attribute, 8, kernel, 1)), number(attribute)}));
    told.give("of 2", call("cuKernelGetAttribute", &attribute, 8, kernel, 2));
    // Copies and fills in streams of the other device.
    both.use(1);
    std::vector<unsigned> host(16);
    void* const at = host.data();
    const auto wait = [&](int result) { return list({number(result), number(call("cuStreamSynchronize", a.stream)), number(call("cuStreamSynchronize", b.stream))}); };
    told.give("fill 0 in 1", list({wait(call("cuMemsetD32Async", a.memory, 9u, small / 4, b.stream)), word(a.memory)}));
    told.give("fill 0 in 0", list({wait(call("cuMemsetD32Async", a.memory, 10u, small / 4, a.stream)), word(a.memory)}));
    told.give("fill 0", list({number(call("cuMemsetD32_v2", a.memory, 11u, small / 4)), word(a.memory)}));
    told.give("HtoD 0 in 1", wait(call("cuMemcpyHtoDAsync_v2", a.memory, static_cast<const void*>(at), small, b.stream)));
    told.give("HtoD 0 in 0", wait(call("cuMemcpyHtoDAsync_v2", a.memory, static_cast<const void*>(at), small, a.stream)));
    told.give("DtoH 0 in 1", wait(call("cuMemcpyDtoHAsync_v2", at, a.memory, small, b.stream)));
    told.give("DtoH 0", call("cuMemcpyDtoH_v2", at, a.memory, small));
    told.give("DtoD 0 to 1 in 0", wait(call("cuMemcpyDtoDAsync_v2", b.memory, a.memory, small, a.stream)));
    told.give("DtoD 0 to 1 in 1", wait(call("cuMemcpyDtoDAsync_v2", b.memory, a.memory, small, b.stream)));
    told.give("DtoD 1 to 0 in 1", wait(call("cuMemcpyDtoDAsync_v2", a.memory, b.memory, small, b.stream)));
    told.give("write value of 0 in 1", list({wait(call("cuStreamWriteValue32_v2", b.stream, a.memory, 17u, 0u)), word(a.memory)}));
    // Copies below go on only if the contexts still work.
    told.give("streams, health 0", health(both, 0));
    told.give("streams, health 1", health(both, 1));
}

void ask_graphs(const Told& told) {
    Both both;
    both.start();
    Side &a = both.at[0], &b = both.at[1];
    // Captured over both devices.
    const auto capture = [&](const std::string& of, int current, bool copies) {
        both.use(current);
        CUevent fork{}, join{};
        must("cuCtxSetCurrent", a.context);
        must("cuEventCreate", &fork, 2u);
        must("cuCtxSetCurrent", b.context);
        must("cuEventCreate", &join, 2u);
        both.use(current);
        told.give(of + ", begin", call("cuStreamBeginCapture_v2", a.stream, 0));
        told.give(of + ", fill 0", call("cuMemsetD32Async", a.memory, 21u, std::size_t{16}, a.stream));
        told.give(of + ", record", call("cuEventRecord", fork, a.stream));
        told.give(of + ", wait in 1", call("cuStreamWaitEvent", b.stream, fork, 0u));
        told.give(of + ", fill 1", call("cuMemsetD32Async", b.memory, 22u, std::size_t{16}, b.stream));
        CUdeviceptr to = b.memory;
        unsigned value = 23;
        void* parameters[] = {&to, &value};
        told.give(of + ", launch in 1", call("cuLaunchKernel", b.put, 1u, 1u, 1u, 1u, 1u, 1u, 0u, b.stream, &parameters[0], static_cast<void**>(nullptr)));
        if (copies) told.give(of + ", copy", call("cuMemcpyPeerAsync", a.memory + 4, a.context, b.memory, b.context, std::size_t{4}, b.stream));
        told.give(of + ", record in 1", call("cuEventRecord", join, b.stream));
        told.give(of + ", wait in 0", call("cuStreamWaitEvent", a.stream, join, 0u));
        void* graph = nullptr;
        told.give(of + ", end", call("cuStreamEndCapture", a.stream, &graph));
        if (!graph) return;
        std::size_t nodes = 0;
        must("cuGraphGetNodes", graph, static_cast<void**>(nullptr), &nodes);
        told.give(of + ", nodes", static_cast<long long>(nodes));
        void* exec = nullptr;
        told.give(of + ", instantiate", call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
        if (!exec) return;
        told.give(of + ", launch in 0", list({number(call("cuGraphLaunch", exec, a.stream)), number(call("cuStreamSynchronize", a.stream)), word(a.memory), word(a.memory + 4), word(b.memory)}));
        fill(a.memory, 0);
        told.give(of + ", launch it in 1", list({number(call("cuGraphLaunch", exec, b.stream)), number(call("cuStreamSynchronize", b.stream)), word(a.memory), word(a.memory + 4)}));
    };
    capture("captured, 0 is current", 0, false);
    capture("captured, 1 is current", 1, false);
    told.give("peer copy is captured without access", [&] {
        must("cuStreamBeginCapture_v2", b.stream, 0);
        const int result = call("cuMemcpyPeerAsync", a.memory + 4, a.context, b.memory, b.context, std::size_t{4}, b.stream);
        void* graph = nullptr;
        return list({number(result), number(call("cuStreamEndCapture", b.stream, &graph))});
    }());
    both.use(1);
    must("cuCtxEnablePeerAccess", a.context, 0u);
    both.use(0);
    must("cuCtxEnablePeerAccess", b.context, 0u);
    capture("captured with access", 0, true);
    both.use(0);
    told.give("graphs, health 0", health(both, 0));
    told.give("graphs, health 1", health(both, 1));
}

void ask_cooperative(const Told& told) {
    Both both;
    both.start();
    CUDA_LAUNCH_PARAMS launches[2]{};
    CUdeviceptr to[2];
    unsigned value = 31;
    void* parameters[2][2];
    const auto fill = [&](int one, int other) {
        const int of[] = {one, other};
        for (int i = 0; i < 2; ++i) {
            const Side& side = both.at[of[i]];
            to[i] = side.memory, parameters[i][0] = &to[i], parameters[i][1] = &value;
            launches[i] = {side.put, 1, 1, 1, 1, 1, 1, 0, side.stream, parameters[i]};
        }
    };
    const auto ask = [&](const std::string& of, unsigned count = 2, unsigned flags = 0) {
        const int result = call("cuLaunchCooperativeKernelMultiDevice", &launches[0], count, flags);
        told.give("cooperative, " + of, list({number(result), number(call("cuStreamSynchronize", both.at[0].stream)), number(call("cuStreamSynchronize", both.at[1].stream))}));
    };
    fill(0, 1);
    ask("both");
    told.give("cooperative, words", word(both.at[0].memory) + " " + word(both.at[1].memory));
    both.use(1);
    ask("1 is current");
    both.use(0);
    ask("flags 3", 2, 3);
    ask("flags 4", 2, 4);
    ask("one", 1);
    ask("none", 0);
    fill(0, 0);
    ask("twice the same");
    fill(0, 1);
    launches[1].function = both.at[1].add;
    ask("other kernel");
    fill(0, 1);
    launches[1].gridDimX = 2;
    ask("other grid");
    fill(0, 1);
    launches[1].blockDimX = 2;
    ask("other block");
    fill(0, 1);
    launches[1].hStream = nullptr;
    ask("null stream");
    fill(0, 1);
    launches[1].hStream = both.at[0].stream;
    ask("stream of the other");
}

} // namespace

void ask_objects(Answers& answers) {
    in_process(answers, "calls with another device's context", [](const Told& told) {
        CUcontext other{};
        must("cuInit", 0u);
        must("cuDevicePrimaryCtxRetain", &other, 1);
        Objects mine;
        mine.prepare();
        for (const Call& asked : context_calls(mine)) {
            must("cuCtxSetCurrent", other);
            std::string answer = number(asked.make());
            CUcontext now{};
            must("cuCtxGetCurrent", &now);
            if (now != other) answer += now == mine.context ? " own" : now ? " changed" : " none";
            told.give("with 1 " + asked.question, answer);
        }
    });
    in_process(answers, "streams", ask_streams);
    in_process(answers, "graphs", ask_graphs);
    in_process(answers, "cooperative", ask_cooperative);
}

} // namespace devices
