// SPDX-License-Identifier: Apache-2.0
// What a driver answers about logs, core dumps, checkpoints, what arrays take of memory, and other calls that few programs
// make. Answers: other_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cctype>
#include <cstring>
#include <unistd.h>
#include <vector>

using namespace answers;

namespace {

std::string number(long long value) {
    return std::to_string(value);
}

/// One line, with times, numbers of threads and addresses as #.
std::string general(std::string text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[' && i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1]))) {
            result += "[#]";
            while (i < text.size() && text[i] != ']') ++i;
        } else if (text.compare(i, 6, " from ") == 0) { // which entry it was is the driver's way of sharing code
            while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
        } else if (text[i] == '\n') {
            result += "\\n";
        } else if (text[i] == '\0') {
            result += "\\0";
        } else {
            result += text[i];
        }
    }
    return result;
}

std::vector<std::string> heard;

/// What the driver says more than which call failed, and why, is its own.
bool names_call(const std::string& line) {
    return line.find("Returning ") != std::string::npos;
}

void hear(void* data, int level, char* message, std::size_t length) {
    if (!names_call(message)) return;
    heard.push_back(number(reinterpret_cast<std::intptr_t>(data)) + " level " + number(level) + " length " +
                    (std::strlen(message) == length ? "of the text" : number(static_cast<long long>(length))) + ": " + general(message));
}

void ask_logs(Answers& answers) {
    if (!dlsym(library, "cuLogsCurrent")) return;
    void *first = nullptr, *second = nullptr;
    answers.give("register a callback", call("cuLogsRegisterCallback", reinterpret_cast<void*>(hear), reinterpret_cast<void*>(5), &first));
    answers.give("register no callback", call("cuLogsRegisterCallback", static_cast<void*>(nullptr), static_cast<void*>(nullptr), &second));
    answers.give("register it again", call("cuLogsRegisterCallback", reinterpret_cast<void*>(hear), reinterpret_cast<void*>(6), &second));
    unsigned begin = 0, now = 0;
    answers.give("current", call("cuLogsCurrent", &begin, 0u));
    answers.give("current with flags", call("cuLogsCurrent", &now, 1u));
    const auto wrong = [&](const char* name, int result) {
        std::string text = number(result);
        for (const std::string& line : heard) text += " | " + line;
        heard.clear();
        answers.give(std::string("heard of ") + name, text);
    };
    CUstream stream = nullptr;
    CUmodule module = nullptr;
    CUcontext context = nullptr;
    wrong("a stream without a context", call("cuStreamCreate", &stream, 0u));
    must("cuCtxCreate_v2", &context, 0u, 0);
    wrong("a free of nothing", call("cuMemFree_v2", CUdeviceptr{0x10}));
    wrong("flags of a stream", call("cuStreamCreate", &stream, 77u));
    wrong("an unknown attribute", call("cuDeviceGetAttribute", reinterpret_cast<int*>(&begin), 9999, 0));
    wrong("a module that is none", call("cuModuleLoadData", &module, static_cast<const void*>("nothing")));
    wrong("too much memory", call("cuMemAlloc_v2", reinterpret_cast<CUdeviceptr*>(&stream), std::size_t{1} << 50));
    wrong("an unknown device", call("cuDeviceGet", reinterpret_cast<int*>(&now), 77));
    answers.give("current then", call("cuLogsCurrent", &now, 0u));
    unsigned at = 0;
    must("cuLogsCurrent", &at, 0u);
    // The driver writes behind the end of buffers that are too small (580).
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{100000}}) {
        std::vector<char> buffer(200000, '?');
        std::size_t given = size;
        const int result = call("cuLogsDumpToMemory", static_cast<unsigned*>(nullptr), buffer.data(), &given, 0u);
        answers.give("dump into " + number(static_cast<long long>(size)), result);
        if (result != 0) continue;
        answers.give("dumped bytes are the text's", given == std::strlen(buffer.data()));
        answers.give("the text ends with a newline", given != 0 && buffer[given - 1] == '\n');
        const std::string text(buffer.data(), given);
        answers.give("the last line", general(text.substr(text.rfind('\n', given - 2) + 1)));
    }
    std::vector<char> buffer(200000);
    std::size_t given = buffer.size();
    answers.give("dump since now", call("cuLogsDumpToMemory", &at, buffer.data(), &given, 0u));
    given = buffer.size();
    answers.give("dump with flags", call("cuLogsDumpToMemory", &at, buffer.data(), &given, 1u));
    answers.give("dump to no file", call("cuLogsDumpToFile", static_cast<unsigned*>(nullptr), static_cast<const char*>(nullptr), 0u));
    answers.give("dump to no folder", call("cuLogsDumpToFile", static_cast<unsigned*>(nullptr), "/none/at/all", 0u));
    answers.give("dump to a file", call("cuLogsDumpToFile", static_cast<unsigned*>(nullptr), "other_answers.log", 0u));
    unlink("other_answers.log");
    answers.give("unregister", call("cuLogsUnregisterCallback", first));
    wrong("a free of nothing, one callback", call("cuMemFree_v2", CUdeviceptr{0x10}));
    answers.give("unregister the other", call("cuLogsUnregisterCallback", second));
    wrong("a free of nothing, no callback", call("cuMemFree_v2", CUdeviceptr{0x10}));
}

std::string without_pid(std::string text) {
    const std::string pid = std::to_string(getpid());
    if (const std::size_t at = text.find(pid); at != std::string::npos) text.replace(at, pid.size(), "PID");
    return text;
}

void ask_core_dumps(Answers& answers) {
    for (const char* entry : {"cuCoredumpGetAttributeGlobal", "cuCoredumpGetAttribute"})
        for (int attribute = 0; attribute <= 9; ++attribute)
            for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{1024}}) {
                std::vector<char> value(2048, '\x77');
                std::size_t given = size;
                const int result = call(entry, attribute, static_cast<void*>(value.data()), &given);
                std::string text = number(result) + " " + number(static_cast<long long>(given));
                if (result == 0 && size) {
                    if (attribute == 5 || attribute == 6)
                        text += " " + general(std::string(value.data(), strnlen(value.data(), size)).substr(0, 60));
                    else
                        text += " " + number(value[0]) + "," + number(value[1]) + "," + number(value[4]);
                }
                answers.give(std::string(entry) + " " + number(attribute) + " in " + number(static_cast<long long>(size)), text);
            }
    for (const char* entry : {"cuCoredumpSetAttributeGlobal", "cuCoredumpSetAttribute"})
        for (int attribute = 0; attribute <= 9; ++attribute)
            for (std::size_t size : {std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{64}}) {
                if (std::strcmp(entry, "cuCoredumpSetAttribute") == 0 && attribute == 6) continue;
                char value[64] = {};
                if (attribute == 5 || attribute == 6) std::strcpy(value, "core_%p");
                std::size_t given = size;
                const int result = call(entry, attribute, static_cast<void*>(value), &given);
                std::vector<char> got(1024, '\x77');
                std::size_t length = got.size();
                const std::string getter = std::string("cuCoredumpGet") + (entry + std::strlen("cuCoredumpSet"));
                const int then = call(getter.c_str(), attribute, static_cast<void*>(got.data()), &length);
                answers.give(std::string(entry) + " " + number(attribute) + " of " + number(static_cast<long long>(size)),
                             number(result) + " then " + number(then) + (then == 0 && (attribute == 5 || attribute == 6) && size == 64 ? " " + without_pid(general(std::string(got.data(), strnlen(got.data(), 40)))) : ""));
            }
}

/// States only: the machine may be others', too.
void ask_checkpoints(Answers& answers) {
    const struct {
        const char* name;
        int pid;
    } processes[] = {{"self", getpid()}, {"0", 0}, {"-1", -1}, {"nobody", 999999}};
    for (const auto& process : processes) {
        int state = 77;
        answers.give(std::string("state of ") + process.name, call("cuCheckpointProcessGetState", process.pid, &state));
    }
}

/// CUDA_ARRAY3D_DESCRIPTOR.
struct Shape {
    std::size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

void ask_arrays(Answers& answers) {
    const Shape shapes[] = {{1, 0, 0, 0x20, 1, 0},       {100, 0, 0, 0x20, 1, 0},     {4096, 0, 0, 0x01, 4, 0},      {1, 1, 0, 0x20, 1, 0},       {64, 64, 0, 0x20, 1, 0},       {100, 50, 0, 0x20, 4, 0},
                            {1000, 1000, 0, 0x01, 1, 0}, {33, 7, 0, 0x01, 2, 0},      {16, 16, 16, 0x20, 1, 0},      {100, 50, 20, 0x10, 2, 0},   {64, 0, 8, 0x20, 1, 1},        {64, 64, 8, 0x20, 1, 1},
                            {64, 64, 6, 0x20, 1, 4},     {64, 64, 12, 0x20, 1, 5},    {256, 256, 0, 0x20, 4, 2},     {512, 256, 0, 0x08, 1, 0},   {4096, 4096, 0, 0x20, 4, 0},   {300, 200, 3, 0x02, 4, 1},
                            {8192, 1, 0, 0x01, 1, 0},    {1, 8192, 0, 0x01, 1, 0},    {128, 128, 128, 0x20, 1, 0},   {200, 200, 200, 0x03, 1, 0}};
    // Not asked: arrays whose memory is mapped later (0x80) or in tiles (0x40), and those of several planes.
    for (const Shape& shape : shapes) {
            Shape wanted = shape;
            char of[100];
            std::snprintf(of, sizeof of, " %zux%zux%zu format %x channels %u flags %x", wanted.width, wanted.height, wanted.depth, wanted.format, wanted.channels, wanted.flags);
            void* array = nullptr;
            const int made = call("cuArray3DCreate_v2", &array, &wanted);
            answers.give(std::string("array") + of, made);
            if (made != 0) continue;
            struct {
                std::size_t size = 7, alignment = 7;
                unsigned reserved[4] = {7, 7, 7, 7};
            } needs;
            int result = call("cuArrayGetMemoryRequirements", &needs, array, 0);
            answers.give(std::string("memory of") + of, number(result) + " " + number(static_cast<long long>(needs.size)) + " " + number(static_cast<long long>(needs.alignment)) + " " + number(needs.reserved[0]));
            unsigned sparse[12] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
            answers.give(std::string("sparse properties of") + of, call("cuArrayGetSparseProperties", static_cast<void*>(sparse), array));
            void* plane = nullptr;
            answers.give(std::string("plane 0 of") + of, call("cuArrayGetPlane", &plane, array, 0u));
            call("cuArrayDestroy", array);
        }
    for (unsigned levels : {1u, 3u, 9u})
        for (unsigned flags : {0u}) {
            Shape wanted{256, 256, 0, 0x20, 1, flags};
            void* mipmap = nullptr;
            const std::string of = " of " + number(levels) + " levels flags " + number(flags);
            const int made = call("cuMipmappedArrayCreate", &mipmap, &wanted, levels);
            answers.give("mipmap" + of, made);
            if (made != 0) continue;
            std::size_t needs[4] = {7, 7, 7, 7};
            const int result = call("cuMipmappedArrayGetMemoryRequirements", static_cast<void*>(needs), mipmap, 0);
            answers.give("memory of a mipmap" + of, number(result) + " " + number(static_cast<long long>(needs[0])) + " " + number(static_cast<long long>(needs[1])));
            unsigned sparse[12] = {};
            answers.give("sparse properties of a mipmap" + of, call("cuMipmappedArrayGetSparseProperties", static_cast<void*>(sparse), mipmap));
        }
}

void ask_rest(Answers& answers) {
    CUcontext context = nullptr, attached = nullptr;
    must("cuCtxGetCurrent", &context);
    answers.give("attach", call("cuCtxAttach", &attached, 0u));
    answers.give("attach with flags", call("cuCtxAttach", &attached, 1u));
    answers.give("profiler", call("cuProfilerInitialize", "config", "output", 0));
    answers.give("profiler with a mode", call("cuProfilerInitialize", "config", "output", 1));
    for (int type : {0, 1, 2}) {
        unsigned affinity[4] = {7, 7, 7, 7};
        answers.give("execution affinity " + number(type), call("cuCtxGetExecAffinity", static_cast<void*>(affinity), type));
    }
    for (const char* entry : {"cuDeviceGetHostAtomicCapabilities", "cuDeviceGetP2PAtomicCapabilities"}) {
        if (!dlsym(library, entry)) continue;
        for (int operation = -1; operation <= 14; ++operation) {
            unsigned capabilities = 777;
            const int result = call(entry, &capabilities, &operation, 1u, 0, 0);
            answers.give(std::string(entry) + " " + number(operation), number(result) + " " + number(capabilities));
        }
        unsigned capabilities[2] = {777, 777};
        const int operations[2] = {0, 10};
        answers.give(std::string(entry) + " of none", call(entry, capabilities, operations, 0u, 0, 0));
        answers.give(std::string(entry) + " of device 1", call(entry, capabilities, operations, 2u, 1, 1));
        answers.give(std::string(entry) + " of two", call(entry, capabilities, operations, 2u, 0, 0));
    }
    void* notification = nullptr;
    const auto notify = +[](void*, void*, void*) {};
    answers.give("register a notification", call("cuDeviceRegisterAsyncNotification", 0, reinterpret_cast<void*>(notify), static_cast<void*>(nullptr), &notification));
    answers.give("unregister it", call("cuDeviceUnregisterAsyncNotification", 0, notification));
    answers.give("register no notification", call("cuDeviceRegisterAsyncNotification", 0, static_cast<void*>(nullptr), static_cast<void*>(nullptr), &notification));
    answers.give("register one of device 1", call("cuDeviceRegisterAsyncNotification", 1, reinterpret_cast<void*>(notify), static_cast<void*>(nullptr), &notification));
    struct {
        CUfunction function;
        unsigned sizes[7];
        CUstream stream;
        void** parameters;
    } launch = {};
    answers.give("launch on no devices", call("cuLaunchCooperativeKernelMultiDevice", &launch, 0u, 0u));
    CUmodule module = nullptr;
    must("cuModuleLoadData", &module, static_cast<const void*>(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n"));
    must("cuModuleGetFunction", &launch.function, module, "k");
    for (int i = 0; i < 6; ++i) launch.sizes[i] = 1;
    CUstream stream = nullptr;
    must("cuStreamCreate", &stream, 1u);
    answers.give("launch on devices, default stream", call("cuLaunchCooperativeKernelMultiDevice", &launch, 1u, 0u));
    launch.stream = stream;
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u}) answers.give("launch on one device flags " + number(flags), call("cuLaunchCooperativeKernelMultiDevice", &launch, 1u, flags));
    unsigned devices = 7, list[4] = {};
    for (int which = 0; which <= 4; ++which) answers.give("GL devices " + number(which), call("cuGLGetDevices_v2", &devices, list, 4u, which));
    void* resource = nullptr;
    answers.give("GL buffer", call("cuGraphicsGLRegisterBuffer", &resource, 1u, 0u));
    answers.give("GL image", call("cuGraphicsGLRegisterImage", &resource, 1u, 0xde1u, 0u));
    answers.give("GL start", call("cuGLInit"));
    answers.give("GL old buffer", call("cuGLRegisterBufferObject", 1u));
    answers.give("EGL image", call("cuGraphicsEGLRegisterImage", &resource, static_cast<void*>(nullptr), 0u));
    CUevent event = nullptr;
    float time = 0;
    must("cuEventCreate", &event, 0u);
    answers.give("no place for the time of no record", call("cuEventElapsedTime_v2", static_cast<float*>(nullptr), event, event));
    must("cuEventRecord", event, stream);
    must("cuStreamSynchronize", stream);
    answers.give("no place for the time", call("cuEventElapsedTime_v2", static_cast<float*>(nullptr), event, event));
    answers.give("no place for the time, first version", call("cuEventElapsedTime", static_cast<float*>(nullptr), event, event));
    answers.give("time of no event", call("cuEventElapsedTime_v2", &time, static_cast<CUevent>(nullptr), event));
    // Versions of before 3.2, whose addresses have 32 bits.
    unsigned pointer = 0, size = 0, total = 0;
    char bytes[64] = {};
    answers.give("old allocate", call("cuMemAlloc", &pointer, 4096u));
    answers.give("old free", call("cuMemFree", 0x1000u));
    answers.give("old free of none", call("cuMemFree", 0u));
    answers.give("old info", call("cuMemGetInfo", &size, &total));
    answers.give("old range", call("cuMemGetAddressRange", &pointer, &size, 0x1000u));
    answers.give("old copy in", call("cuMemcpyHtoD", 0x1000u, static_cast<void*>(bytes), 16u));
    answers.give("old copy out", call("cuMemcpyDtoH", static_cast<void*>(bytes), 0x1000u, 16u));
    answers.give("old copy", call("cuMemcpyDtoD", 0x1000u, 0x2000u, 16u));
    answers.give("old fill", call("cuMemsetD8", 0x1000u, 0u, 16u));
    answers.give("old fill of words", call("cuMemsetD32", 0x1000u, 0u, 16u));
    answers.give("old pitch", call("cuMemAllocPitch", &pointer, &size, 100u, 100u, 4u));
    answers.give("old total", number(call("cuDeviceTotalMem", &total, 0)));
    struct {
        unsigned width, height;
        int format;
        unsigned channels;
    } flat = {64, 64, 0x20, 1}, got = {};
    void* array = nullptr;
    answers.give("old array", call("cuArrayCreate", &array, &flat));
    if (array) answers.give("old array's description", call("cuArrayGetDescriptor", &got, array));
    struct {
        unsigned width, height, depth;
        int format;
        unsigned channels, flags;
    } deep = {16, 16, 16, 0x20, 1, 0}, deep_got = {};
    void* volume = nullptr;
    answers.give("old volume", call("cuArray3DCreate", &volume, &deep));
    if (volume) answers.give("old volume's description", call("cuArray3DGetDescriptor", &deep_got, volume));
    if (array) {
        answers.give("old copy into an array", call("cuMemcpyHtoA", array, 0u, static_cast<void*>(bytes), 16u));
        answers.give("old copy out of an array", call("cuMemcpyAtoH", static_cast<void*>(bytes), array, 0u, 16u));
        answers.give("old copy between arrays", call("cuMemcpyAtoA", array, 32u, array, 0u, 16u));
    }
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    alarm(100);
    must("cuInit", 0u);
    ask_logs(all);
    CUcontext context = nullptr;
    must("cuCtxCreate_v2", &context, 0u, 0);
    ask_core_dumps(all);
    ask_checkpoints(all);
    ask_arrays(all);
    ask_rest(all);
    return all.finish();
}
