// SPDX-License-Identifier: Apache-2.0
// What a driver answers to attributes of launches and of streams. Answers: attribute_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <unistd.h>

using namespace answers;

namespace {

const char* const kernels = ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .entry empty()\n{\n ret;\n}\n"
                            ".visible .entry trigger()\n{\n griddepcontrol.launch_dependents;\n griddepcontrol.wait;\n ret;\n}\n";

/// CUlaunchAttribute.
struct Attribute {
    int id = 0;
    char pad[4] = {};
    union {
        int ints[16];
        void* pointers[8];
        unsigned char bytes[64];
    } value = {};
};

/// CUlaunchConfig.
struct Config {
    unsigned grid[3] = {4, 1, 1}, block[3] = {32, 1, 1}, shared = 0;
    CUstream stream = nullptr;
    Attribute* attributes = nullptr;
    unsigned count = 0;
};

CUstream stream;
CUfunction empty, trigger;

std::string number(long long value) {
    return std::to_string(value);
}

int launch(Attribute attribute, CUfunction function = empty) {
    Config config;
    config.stream = stream;
    config.attributes = &attribute;
    config.count = 1;
    const int result = call("cuLaunchKernelEx", &config, function, static_cast<void**>(nullptr), static_cast<void**>(nullptr));
    must("cuStreamSynchronize", stream);
    return result;
}

Attribute ints(int id, int a, int b = 0, int c = 0) {
    Attribute result;
    result.id = id;
    result.value.ints[0] = a, result.value.ints[1] = b, result.value.ints[2] = c;
    return result;
}

void ask_launches(Answers& answers) {
    for (int id = -1; id <= 24; ++id) {
        if (id == 7 || id == 12 || id == 13) continue; // have handles
        for (int value : {-1, 0, 1, 2, 3, 4, 8, 50, 100, 101, 1000})
            answers.give("launch attribute " + number(id) + " value " + number(value), launch(ints(id, value)));
        answers.give("launch attribute " + number(id) + " value 1,1,1", launch(ints(id, 1, 1, 1)));
        answers.give("launch attribute " + number(id) + " value 2,1,1", launch(ints(id, 2, 1, 1)));
        answers.give("launch attribute " + number(id) + " value 0,1", launch(ints(id, 0, 1)));
        answers.give("launch attribute " + number(id) + " value 0,1,1 of a trigger", launch(ints(id, 0, 1, 1), trigger));
        answers.give("launch attribute " + number(id) + " value 1 of a trigger", launch(ints(id, 1), trigger));
    }
    // Preferred beside required cluster sizes.
    for (int required : {1, 2, 4})
        for (int preferred : {0, 1, 2, 3, 4, 8, 16}) {
            Attribute both[2] = {ints(4, required, 1, 1), ints(11, preferred, 1, 1)};
            Config config;
            config.grid[0] = 16;
            config.stream = stream;
            config.attributes = both;
            config.count = 2;
            answers.give("cluster " + number(required) + " preferred " + number(preferred),
                         call("cuLaunchKernelEx", &config, empty, static_cast<void**>(nullptr), static_cast<void**>(nullptr)));
            must("cuStreamSynchronize", stream);
        }
    for (unsigned flags : {0u, 1u, 2u, 3u}) {
        CUevent event = nullptr;
        must("cuEventCreate", &event, flags);
        for (int id : {7, 12})
            for (int event_flags : {0, 1, 2, 3})
                for (int at_start : {0, 1, 2}) {
                    Attribute attribute;
                    attribute.id = id;
                    std::memcpy(attribute.value.bytes, &event, sizeof event);
                    attribute.value.ints[2] = event_flags;
                    attribute.value.ints[3] = at_start;
                    const std::string of = " attribute " + number(id) + " event " + number(flags) + " flags " + number(event_flags) + " start " + number(at_start);
                    answers.give("launch" + of, launch(attribute, at_start == 2 ? trigger : empty));
                    answers.give("query after launch" + of, call("cuEventQuery", event));
                }
        float time = 0;
        answers.give("time between events " + number(flags), call("cuEventElapsedTime", &time, event, event));
    }
    for (int id : {7, 12}) answers.give("launch attribute " + number(id) + " without an event", launch(ints(id, 0)));
    Config config;
    config.stream = stream;
    config.count = 0;
    answers.give("launch without attributes", call("cuLaunchKernelEx", &config, empty, static_cast<void**>(nullptr), static_cast<void**>(nullptr)));
    Attribute same[3] = {ints(6, 1), ints(6, 0), ints(8, -1)};
    config.attributes = same;
    config.count = 3;
    answers.give("launch with one attribute twice", call("cuLaunchKernelEx", &config, empty, static_cast<void**>(nullptr), static_cast<void**>(nullptr)));
    must("cuStreamSynchronize", stream);
}

std::string stream_attribute(CUstream of, int id) {
    Attribute got;
    std::memset(&got.value, 0x77, sizeof got.value);
    const int result = call("cuStreamGetAttribute", of, id, static_cast<void*>(&got.value));
    std::string text = number(result);
    if (result == 0)
        for (int i = 0; i < (id == 1 ? 8 : 3); ++i) text += (i == 0 ? " " : ",") + (got.value.ints[i] == 0x77777777 ? "-" : number(got.value.ints[i]));
    return text;
}

void ask_streams(Answers& answers) {
    for (int id = -1; id <= 24; ++id) answers.give("attribute " + number(id) + " of a new stream", stream_attribute(stream, id));
    for (int id = -1; id <= 24; ++id) answers.give("attribute " + number(id) + " of the default stream", stream_attribute(nullptr, id));
    for (int id = 0; id <= 20; ++id)
        for (int value : {-100, -6, -5, -3, -1, 0, 1, 2, 3, 4, 5, 8, 100}) {
            CUstream mine = nullptr;
            must("cuStreamCreate", &mine, 1u);
            Attribute attribute = ints(id, value);
            const int result = call("cuStreamSetAttribute", mine, id, static_cast<void*>(&attribute.value));
            answers.give("set " + number(id) + " to " + number(value), number(result) + ": " + stream_attribute(mine, id));
            must("cuStreamDestroy_v2", mine);
        }
    // Memory synchronisation domains.
    for (int first : {0, 1, 2, 3, 4, 255})
        for (int second : {0, 1, 3, 4}) {
            CUstream mine = nullptr;
            must("cuStreamCreate", &mine, 1u);
            Attribute attribute;
            attribute.value.bytes[0] = static_cast<unsigned char>(first), attribute.value.bytes[1] = static_cast<unsigned char>(second);
            const int result = call("cuStreamSetAttribute", mine, 9, static_cast<void*>(&attribute.value));
            answers.give("set map " + number(first) + "," + number(second), number(result) + ": " + stream_attribute(mine, 9));
            attribute.id = 9;
            answers.give("launch with map " + number(first) + "," + number(second), launch(attribute));
            must("cuStreamDestroy_v2", mine);
        }
    // Access policy windows: base, bytes, ratio, hit, miss.
    CUdeviceptr memory = 0;
    must("cuMemAlloc_v2", &memory, std::size_t{64} << 20);
    struct Window {
        CUdeviceptr base;
        std::size_t bytes;
        float ratio;
        int hit, miss;
    };
    const struct {
        const char* name;
        Window window;
    } windows[] = {{"usual", {memory, 1 << 20, 0.5f, 2, 1}},       {"null of no bytes", {0, 0, 0, 0, 0}},         {"null", {0, 4096, 1, 2, 1}},
                   {"ratio above one", {memory, 4096, 1.5f, 2, 1}}, {"negative ratio", {memory, 4096, -1, 2, 1}}, {"large", {memory, 64u << 20, 1, 2, 1}},
                   {"too large", {memory, 256u << 20, 1, 2, 1}},    {"hit of 3", {memory, 4096, 1, 3, 1}},         {"miss persists", {memory, 4096, 1, 1, 2}},
                   {"nowhere", {0x1000, 4096, 1, 2, 1}},            {"all normal", {memory, 4096, 1, 0, 0}}};
    for (const auto& one : windows) {
        Attribute attribute;
        attribute.id = 1;
        std::memcpy(attribute.value.bytes, &one.window, sizeof one.window);
        answers.give(std::string("set window ") + one.name, call("cuStreamSetAttribute", stream, 1, static_cast<void*>(&attribute.value)));
        Attribute got;
        answers.give(std::string("get window ") + one.name, call("cuStreamGetAttribute", stream, 1, static_cast<void*>(&got.value)));
        answers.give(std::string("same window ") + one.name, std::memcmp(&got.value, &one.window, 32) == 0 ? "yes" : "no");
        answers.give(std::string("launch with window ") + one.name, launch(attribute));
    }
    CUstream from = nullptr, to = nullptr;
    must("cuStreamCreateWithPriority", &from, 1u, -3);
    must("cuStreamCreate", &to, 0u);
    Attribute policy = ints(3, 2), domain = ints(10, 1);
    must("cuStreamSetAttribute", from, 3, static_cast<void*>(&policy.value));
    must("cuStreamSetAttribute", from, 10, static_cast<void*>(&domain.value));
    answers.give("copy attributes", call("cuStreamCopyAttributes", to, from));
    for (int id = 0; id <= 16; ++id) answers.give("copied attribute " + number(id), stream_attribute(to, id));
    int priority = 7;
    answers.give("priority after the copy", call("cuStreamGetPriority", to, &priority));
    answers.give("its value", priority);
    Attribute high = ints(8, -4);
    answers.give("set priority of a stream", call("cuStreamSetAttribute", to, 8, static_cast<void*>(&high.value)));
    call("cuStreamGetPriority", to, &priority);
    answers.give("priority then", priority);
    for (int wanted : {-100, -6, -5, -1, 0, 1, 100}) {
        CUstream mine = nullptr;
        const int result = call("cuStreamCreateWithPriority", &mine, 0u, wanted);
        int given = 77;
        if (result == 0) call("cuStreamGetPriority", mine, &given);
        answers.give("stream of priority " + number(wanted), number(result) + " " + number(given));
    }
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    alarm(100);
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    must("cuInit", 0u);
    must("cuCtxCreate_v2", &context, 0u, 0);
    must("cuStreamCreate", &stream, 1u);
    must("cuModuleLoadData", &module, static_cast<const void*>(kernels));
    must("cuModuleGetFunction", &empty, module, "empty");
    must("cuModuleGetFunction", &trigger, module, "trigger");
    ask_launches(all);
    ask_streams(all);
    return all.finish();
}
