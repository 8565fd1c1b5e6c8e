// SPDX-License-Identifier: Apache-2.0
// What a driver answers about device resources and green contexts. Answers: green_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <set>
#include <unistd.h>
#include <vector>

using namespace answers;

namespace {

const char* const kernels = ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .entry where(.param .u64 p)\n{\n .reg .b64 a, i; .reg .b32 s, n, c;\n ld.param.u64 a, [p];\n mov.u32 s, %smid;\n mov.u32 n, %nsmid;\n"
                            " mov.u32 c, %ctaid.x;\n mul.wide.u32 i, c, 8;\n add.s64 a, a, i;\n st.global.v2.u32 [a], {s, n};\n ret;\n}\n"
                            ".visible .entry empty()\n{\n ret;\n}\n";

/// CUdevResource.
struct Resource {
    int type;
    unsigned char padding[92];
    unsigned sm[12];
};
static_assert(sizeof(Resource) == 144);

std::string number(long long value) {
    return std::to_string(value);
}

std::string text(int result, const Resource& resource) {
    if (result) return number(result);
    return "0 type " + number(resource.type) + " sms " + number(resource.sm[0]) + " least " + number(resource.sm[1]) + " alignment " + number(resource.sm[2]);
}

Resource fresh() {
    Resource resource;
    std::memset(&resource, 0, sizeof resource);
    return resource;
}

Resource whole() {
    Resource resource = fresh();
    must("cuDeviceGetDevResource", 0, &resource, 1);
    return resource;
}

void ask_splits(Answers& answers) {
    for (int type : {-1, 0, 1, 2, 3, 1000, 10000}) {
        Resource resource = fresh();
        const int result = call("cuDeviceGetDevResource", 0, &resource, type);
        answers.give("resource of the device, type " + number(type), text(result, resource));
    }
    Resource none = fresh();
    answers.give("resource of device 1", call("cuDeviceGetDevResource", 1, &none, 1));
    const Resource all = whole();
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u})
        for (unsigned least : {0u, 1u, 2u, 3u, 4u, 7u, 8u, 9u, 12u, 15u, 16u, 17u, 18u, 24u, 32u, 33u, 64u, 66u, 67u, 100u, 128u, 131u, 132u, 133u, 200u})
            for (unsigned groups : {1u, 2u, 5u, 100u}) {
                std::vector<Resource> parts(groups, fresh());
                Resource rest = fresh();
                unsigned count = groups;
                const int result = call("cuDevSmResourceSplitByCount", parts.data(), &count, &all, &rest, flags, least);
                std::string answer = number(result);
                if (result == 0) {
                    answer += " groups " + number(count) + ":";
                    for (unsigned i = 0; i < count && i < groups; ++i)
                        if (i < 3 || parts[i].sm[0] != parts[i - 1].sm[0]) answer += " " + number(parts[i].sm[0]);
                    answer += " rest " + number(rest.type) + " " + number(rest.sm[0]);
                    if (least == 8) answer += " least " + number(parts[0].sm[1]) + " alignment " + number(parts[0].sm[2]) + " rest's " + number(rest.sm[1]) + " " + number(rest.sm[2]);
                }
                answers.give("split of flags " + number(flags) + " by " + number(least) + " into " + number(groups), answer);
            }
    for (unsigned least : {8u, 16u, 20u, 40u, 132u}) {
        unsigned count = 0;
        const int result = call("cuDevSmResourceSplitByCount", static_cast<Resource*>(nullptr), &count, &all, static_cast<Resource*>(nullptr), 0u, least);
        answers.give("groups of " + number(least), number(result) + " " + number(count));
    }
    unsigned count = 0;
    std::vector<Resource> parts(4, fresh());
    answers.give("split into none", call("cuDevSmResourceSplitByCount", parts.data(), &count, &all, static_cast<Resource*>(nullptr), 0u, 8u));
    count = 2;
    Resource bad = all;
    bad.type = 0;
    answers.give("split of nothing", call("cuDevSmResourceSplitByCount", parts.data(), &count, &bad, static_cast<Resource*>(nullptr), 0u, 8u));
    bad = fresh();
    bad.type = 1;
    answers.give("split of zeros", call("cuDevSmResourceSplitByCount", parts.data(), &count, &bad, static_cast<Resource*>(nullptr), 0u, 8u));
    bad.sm[0] = 64;
    answers.give("split of invented ones", call("cuDevSmResourceSplitByCount", parts.data(), &count, &bad, static_cast<Resource*>(nullptr), 0u, 8u));
    // A part again.
    count = 2;
    must("cuDevSmResourceSplitByCount", parts.data(), &count, &all, static_cast<Resource*>(nullptr), 0u, 64u);
    const Resource part = parts[0];
    for (unsigned least : {8u, 16u, 24u, 64u, 65u}) {
        count = 4;
        Resource rest = fresh();
        const int result = call("cuDevSmResourceSplitByCount", parts.data(), &count, &part, &rest, 0u, least);
        answers.give("part of 64 split by " + number(least), number(result) + " groups " + number(count) + " of " + number(parts[0].sm[0]) + " rest " + number(rest.sm[0]));
    }
}

void ask_contexts(Answers& answers) {
    Resource all = whole();
    Resource parts[4] = {fresh(), fresh(), fresh(), fresh()}, rest = fresh();
    unsigned count = 4;
    must("cuDevSmResourceSplitByCount", parts, &count, &all, &rest, 0u, 16u);
    void* description = nullptr;
    answers.give("description of the whole", call("cuDevResourceGenerateDesc", &description, &all, 1u));
    void* whole_description = description;
    answers.give("description of two parts", call("cuDevResourceGenerateDesc", &description, parts, 2u));
    void* two = description;
    Resource same[2] = {parts[0], parts[0]};
    answers.give("description of one part twice", call("cuDevResourceGenerateDesc", &description, same, 2u));
    Resource invented = fresh();
    answers.give("description of nothing", call("cuDevResourceGenerateDesc", &description, &invented, 1u));
    invented.type = 1;
    invented.sm[0] = 16;
    answers.give("description of an invented part", call("cuDevResourceGenerateDesc", &description, &invented, 1u));
    Resource altered = parts[0];
    altered.sm[0] = 8;
    answers.give("description of an altered part", call("cuDevResourceGenerateDesc", &description, &altered, 1u));
    answers.give("description of the rest", rest.type == 1 ? call("cuDevResourceGenerateDesc", &description, &rest, 1u) : -1);
    answers.give("description of a part", call("cuDevResourceGenerateDesc", &description, parts, 1u));
    void* one = description;
    unsigned flags = 0;
    int active = 7;
    must("cuDevicePrimaryCtxGetState", 0, &flags, &active);
    answers.give("primary context active before", active);
    for (unsigned wanted : {0u, 1u, 2u, 3u}) {
        void* green = nullptr;
        const int result = call("cuGreenCtxCreate", &green, one, 0, wanted);
        const std::string question = "create with flags " + number(wanted);
        if (wanted == 0) // CUDA 13.1 takes none; the recorded driver is of 13.0
            answers.give_differing(question, result, 0, 1);
        else
            answers.give(question, result);
        if (result == 0 && wanted != 1) call("cuGreenCtxDestroy", green);
    }
    void *green = nullptr, *second = nullptr, *of_all = nullptr;
    answers.give("create on device 1", call("cuGreenCtxCreate", &green, one, 1, 1u));
    answers.give("create of nothing", call("cuGreenCtxCreate", &green, static_cast<void*>(nullptr), 0, 1u));
    answers.give("create", call("cuGreenCtxCreate", &green, one, 0, 1u));
    answers.give("create one of two parts", call("cuGreenCtxCreate", &second, two, 0, 1u));
    answers.give("create one of the whole", call("cuGreenCtxCreate", &of_all, whole_description, 0, 1u));
    must("cuDevicePrimaryCtxGetState", 0, &flags, &active);
    answers.give("primary context active then", number(active) + " flags " + number(flags));
    for (int type : {0, 1, 2}) {
        Resource got = fresh();
        int result = call("cuGreenCtxGetDevResource", green, &got, type);
        answers.give("resource of a green context, type " + number(type), text(result, got));
        got = fresh();
        result = call("cuGreenCtxGetDevResource", second, &got, type);
        answers.give("resource of one of two parts, type " + number(type), text(result, got));
        got = fresh();
        result = call("cuGreenCtxGetDevResource", of_all, &got, type);
        answers.give("resource of one of all, type " + number(type), text(result, got));
    }
    CUcontext context = nullptr, again = nullptr, primary = nullptr;
    answers.give("context of it", call("cuCtxFromGreenCtx", &context, green));
    answers.give("context of it again", call("cuCtxFromGreenCtx", &again, green));
    answers.give("the same", context == again);
    CUstream early = nullptr;
    answers.give("green stream before it is current", call("cuGreenCtxStreamCreate", &early, green, 1u, 0));
    answers.give("retain the primary context", call("cuDevicePrimaryCtxRetain", &primary, 0));
    answers.give("which is another", primary != context);
    answers.give("make it current", call("cuCtxSetCurrent", context));
    CUcontext now = nullptr;
    must("cuCtxGetCurrent", &now);
    answers.give("it is current", now == context);
    int device = 7;
    answers.give("its device", call("cuCtxGetDevice", &device));
    answers.give("its flags", call("cuCtxGetFlags", &flags));
    Resource got = fresh();
    answers.give("its resource", text(call("cuCtxGetDevResource", context, &got, 1), got));
    got = fresh();
    answers.give("resource of the primary context", text(call("cuCtxGetDevResource", primary, &got, 1), got));
    got = fresh();
    answers.give("resource of no context", text(call("cuCtxGetDevResource", static_cast<CUcontext>(nullptr), &got, 1), got));
    unsigned long long id = 0, primary_id = 0;
    answers.give("its id", call("cuCtxGetId", context, &id));
    answers.give("id of the primary", call("cuCtxGetId", primary, &primary_id));
    answers.give("ids are alike", id == primary_id);
    int value = 0;
    must("cuDeviceGetAttribute", &value, 16, 0);
    answers.give("multiprocessors of the device", value);
    for (unsigned wanted : {0u, 1u, 2u})
        for (int priority : {0, -3, -100, 7}) {
            CUstream stream = nullptr;
            const int result = call("cuGreenCtxStreamCreate", &stream, green, wanted, priority);
            std::string answer = number(result);
            if (result == 0) {
                int given = 77;
                unsigned stream_flags = 77;
                call("cuStreamGetPriority", stream, &given);
                call("cuStreamGetFlags", stream, &stream_flags);
                answer += " priority " + number(given) + " flags " + number(stream_flags);
                call("cuStreamDestroy_v2", stream);
            }
            answers.give("green stream of flags " + number(wanted) + " priority " + number(priority), answer);
        }
    CUstream stream = nullptr, plain = nullptr;
    must("cuGreenCtxStreamCreate", &stream, green, 1u, 0);
    answers.give("plain stream under it", call("cuStreamCreate", &plain, 1u));
    const auto owner = [&](const char* name, CUstream asked) {
        void* of = reinterpret_cast<void*>(7);
        const int result = call("cuStreamGetGreenCtx", asked, &of);
        answers.give(std::string("green context of ") + name, number(result) + (of == green ? " it" : of == nullptr ? " none" : " another"));
        CUcontext its = nullptr;
        const int other = call("cuStreamGetCtx", asked, &its);
        answers.give(std::string("context of ") + name, number(other) + (its == context ? " it" : its == primary ? " the primary" : its ? " another" : " none"));
        its = nullptr, of = reinterpret_cast<void*>(7);
        const int both = call("cuStreamGetCtx_v2", asked, &its, &of);
        answers.give(std::string("both of ") + name, number(both) + (its == context ? " it" : its == primary ? " the primary" : its ? " another" : " none") +
                                                         (of == green ? " it" : of == nullptr ? " none" : " another"));
    };
    owner("a green stream", stream);
    owner("a plain stream", plain);
    owner("the default stream", nullptr);
    CUmodule module = nullptr;
    CUfunction where = nullptr, empty = nullptr;
    answers.give("load a module", call("cuModuleLoadData", &module, static_cast<const void*>(kernels)));
    must("cuModuleGetFunction", &where, module, "where");
    must("cuModuleGetFunction", &empty, module, "empty");
    CUdeviceptr memory = 0;
    answers.give("allocate", call("cuMemAlloc_v2", &memory, std::size_t{1} << 20));
    CUcontext of_memory = nullptr;
    answers.give("context of memory", call("cuPointerGetAttribute", static_cast<void*>(&of_memory), 1, memory));
    answers.give("is", of_memory == context ? "it" : of_memory == primary ? "the primary" : "another");
    const auto places = [&](const char* name, CUstream in) {
        const unsigned blocks = 8192;
        void* arguments[1] = {&memory};
        const int result = call("cuLaunchKernel", where, blocks, 1u, 1u, 256u, 1u, 1u, 0u, in, static_cast<void**>(arguments), static_cast<void**>(nullptr));
        const int ended = call("cuStreamSynchronize", in);
        std::vector<unsigned> pairs(blocks * 2);
        must("cuMemcpyDtoH_v2", static_cast<void*>(pairs.data()), memory, pairs.size() * 4);
        std::set<unsigned> sms, counts;
        for (unsigned i = 0; i < blocks; ++i) sms.insert(pairs[2 * i]), counts.insert(pairs[2 * i + 1]);
        answers.give(std::string("multiprocessors used in ") + name, number(result) + " " + number(ended) + " " + number(static_cast<long long>(sms.size())) + " %nsmid " + number(*counts.begin()));
    };
    places("a green stream", stream);
    places("a plain stream under it", plain);
    places("the default stream under it", nullptr);
    int per_sm = 0, least_grid = 0, block = 0;
    must("cuOccupancyMaxActiveBlocksPerMultiprocessor", &per_sm, empty, 256, std::size_t{0});
    answers.give("blocks for each multiprocessor", per_sm);
    call("cuOccupancyMaxPotentialBlockSize", &least_grid, &block, empty, static_cast<void*>(nullptr), std::size_t{0}, 0);
    answers.give("potential block and grid", number(block) + " " + number(least_grid));
    for (unsigned sms : {15u, 16u, 17u, 132u, 133u})
        for (CUstream in : {stream, static_cast<CUstream>(nullptr)}) {
            const int result = call("cuLaunchCooperativeKernel", empty, sms * static_cast<unsigned>(per_sm), 1u, 1u, 256u, 1u, 1u, 0u, in, static_cast<void**>(nullptr));
            call("cuStreamSynchronize", in);
            answers.give(std::string("cooperative grid for ") + number(sms) + (in ? " in a green stream" : " in the default stream"), result);
        }
    CUevent event = nullptr;
    must("cuEventCreate", &event, 0u);
    answers.give("record an event of it", call("cuGreenCtxRecordEvent", green, event));
    answers.give("wait for an event in it", call("cuGreenCtxWaitEvent", green, event));
    answers.give("record an event of its context", call("cuCtxRecordEvent", context, event));
    answers.give("wait for an event in its context", call("cuCtxWaitEvent", context, event));
    answers.give("record an event of the primary", call("cuCtxRecordEvent", primary, event));
    answers.give("wait for an event in the primary", call("cuCtxWaitEvent", primary, event));
    answers.give("record an event of no context", call("cuCtxRecordEvent", static_cast<CUcontext>(nullptr), event));
    answers.give("record no event", call("cuCtxRecordEvent", primary, static_cast<CUevent>(nullptr)));
    answers.give("query it", call("cuEventQuery", event));
    unsigned long long green_id = 0, second_id = 0;
    if (dlsym(library, "cuGreenCtxGetId")) {
        answers.give("id of a green context", call("cuGreenCtxGetId", green, &green_id));
        must("cuGreenCtxGetId", second, &second_id);
        answers.give("ids of green contexts differ", green_id != second_id);
        answers.give("and from its context's", green_id != id);
    }
    answers.give("synchronise", call("cuCtxSynchronize"));
    answers.give("synchronise its context", call("cuCtxSynchronize_v2", context));
    CUcontext user = nullptr;
    answers.give("destroy its context", call("cuCtxDestroy_v2", context));
    must("cuCtxGetCurrent", &now);
    answers.give("current after that", now == context ? "it" : now == primary ? "the primary" : now ? "another" : "none");
    must("cuCtxCreate_v2", &user, 0u, 0);
    got = fresh();
    answers.give("resource of a user context", text(call("cuCtxGetDevResource", user, &got, 1), got));
    answers.give("wait for an event of the other context", call("cuCtxWaitEvent", user, event));
    answers.give("record an event of the other context", call("cuCtxRecordEvent", user, event));
    places("a green stream, another context current", stream);
    must("cuCtxPopCurrent_v2", static_cast<void**>(nullptr));
    must("cuStreamDestroy_v2", stream);
    must("cuStreamDestroy_v2", plain);
    answers.give("destroy a green context", call("cuGreenCtxDestroy", second));
    answers.give("destroy it", call("cuGreenCtxDestroy", green));
    answers.give("allocate after that", call("cuMemAlloc_v2", &memory, std::size_t{4096}));
    answers.give("destroy the last", call("cuGreenCtxDestroy", of_all));
    must("cuDevicePrimaryCtxRelease_v2", 0);
    must("cuDevicePrimaryCtxGetState", 0, &flags, &active);
    answers.give("primary context active at the end", active);
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    alarm(100);
    must("cuInit", 0u);
    ask_splits(all);
    ask_contexts(all);
    return all.finish();
}
