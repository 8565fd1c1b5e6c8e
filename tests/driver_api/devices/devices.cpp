// SPDX-License-Identifier: Apache-2.0
// Devices, their names and ways to each other; their contexts.
#include "two_devices.h"

#include <cctype>

namespace devices {

void ask_devices(Answers& answers) {
    in_process(answers, "devices", [](const Told& told) {
        must("cuInit", 0u);
        int count = 0;
        must("cuDeviceGetCount", &count);
        told.give("count", count);
        char names[2][256] = {}, buses[2][32] = {};
        std::size_t totals[2] = {};
        unsigned char uuids[2][16] = {};
        for (int i = 0; i < 2; ++i) {
            must("cuDeviceGetName", &names[i][0], 256, i);
            must("cuDeviceTotalMem_v2", &totals[i], i);
            must("cuDeviceGetUuid_v2", &uuids[i][0], i);
            must("cuDeviceGetPCIBusId", &buses[i][0], 32, i);
        }
        told.give("names are equal", !std::strcmp(names[0], names[1]));
        told.give("sizes are equal", totals[0] == totals[1]);
        told.give("UUIDs are equal", !std::memcmp(uuids[0], uuids[1], 16));
        told.give("bus ids are equal", !std::strcmp(buses[0], buses[1]));
        told.give("bus ids are in order", std::strcmp(buses[0], buses[1]) < 0);
        told.give("length of a bus id", static_cast<long long>(std::strlen(buses[1])));
        std::string differ;
        for (int attribute = 1; attribute <= 147; ++attribute) {
            int one = 0, other = 0;
            const int first = call("cuDeviceGetAttribute", &one, attribute, 0), second = call("cuDeviceGetAttribute", &other, attribute, 1);
            if (first != second || one != other) differ += " " + number(attribute);
        }
        told.give("attributes that differ", differ);
        for (int i = 0; i < 2; ++i) {
            int domain = 0, bus = 0, device = 0;
            must("cuDeviceGetAttribute", &domain, 50, i);
            must("cuDeviceGetAttribute", &bus, 33, i);
            must("cuDeviceGetAttribute", &device, 34, i);
            char expected[32];
            std::snprintf(expected, sizeof expected, "%04x:%02x:%02x.0", domain, bus, device);
            for (char& c : buses[i]) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            told.give("bus id of attributes, " + number(i), !std::strcmp(expected, buses[i]));
            CUdevice found = -5;
            told.give("by bus id, " + number(i), list({number(call("cuDeviceGetByPCIBusId", &found, static_cast<const char*>(buses[i]))), number(found)}));
        }
        for (int attribute : {16, 84, 85, 86, 88, 89, 95, 96, 98, 100, 102, 103, 115, 125, 130, 131, 132, 134, 141, 147}) {
            int value = 0;
            const int result = call("cuDeviceGetAttribute", &value, attribute, 1);
            told.give("attribute " + number(attribute) + " of the second", number(result) + " " + number(value));
        }
        for (int ordinal : {-1, 0, 1, 2, 100}) {
            CUdevice device = -5;
            const int result = call("cuDeviceGet", &device, ordinal);
            told.give("cuDeviceGet " + number(ordinal), number(result) + " " + number(device));
        }
        const int pairs[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}, {-1, 0}, {0, -1}, {2, 2}};
        for (const auto& pair : pairs) {
            const std::string of = number(pair[0]) + " " + number(pair[1]);
            int can = -5;
            const int result = call("cuDeviceCanAccessPeer", &can, pair[0], pair[1]);
            told.give("can access " + of, number(result) + " " + number(can));
            for (int attribute = 0; attribute <= 6; ++attribute) {
                int value = -5;
                const int asked = call("cuDeviceGetP2PAttribute", &value, attribute, pair[0], pair[1]);
                told.give("P2P attribute " + number(attribute) + " of " + of, number(asked) + " " + number(value));
            }
            for (int operation = 0; operation <= 14; ++operation) {
                unsigned capability = 0x777;
                const int asked = call("cuDeviceGetP2PAtomicCapabilities", &capability, &operation, 1u, pair[0], pair[1]);
                told.give("P2P atomic " + number(operation) + " of " + of, number(asked) + " " + number(capability));
            }
        }
        {
            const int operations[] = {0, 1, 2};
            unsigned capabilities[3] = {};
            told.give("P2P atomics, none", call("cuDeviceGetP2PAtomicCapabilities", &capabilities[0], &operations[0], 0u, 0, 1));
            told.give("P2P atomics, three", list({number(call("cuDeviceGetP2PAtomicCapabilities", &capabilities[0], &operations[0], 3u, 0, 1)), number(capabilities[0]), number(capabilities[2])}));
            told.give("P2P atomics, no place", call("cuDeviceGetP2PAtomicCapabilities", static_cast<unsigned*>(nullptr), &operations[0], 1u, 0, 1));
            told.give("P2P atomics, no operations", call("cuDeviceGetP2PAtomicCapabilities", &capabilities[0], static_cast<const int*>(nullptr), 1u, 0, 1));
            told.give("P2P attribute, no place", call("cuDeviceGetP2PAttribute", static_cast<int*>(nullptr), 1, 0, 1));
            told.give("can access, no place", call("cuDeviceCanAccessPeer", static_cast<int*>(nullptr), 0, 1));
        }
    });
}

void ask_contexts(Answers& answers) {
    in_process(answers, "contexts", [](const Told& told) {
        must("cuInit", 0u);
        const auto state = [&](int device) {
            unsigned flags = 77;
            int active = 77;
            const int result = call("cuDevicePrimaryCtxGetState", device, &flags, &active);
            return number(result) + " " + number(flags) + " " + number(active);
        };
        told.give("state of 0", state(0));
        told.give("state of 1", state(1));
        told.give("state of 2", state(2));
        told.give("flags of 1", call("cuDevicePrimaryCtxSetFlags_v2", 1, 4u));
        Both both;
        must("cuDevicePrimaryCtxRetain", &both.at[1].context, 1);
        told.give("state of 0, 1 is retained", state(0));
        told.give("state of 1, retained", state(1));
        told.give("current then", both.current());
        must("cuDevicePrimaryCtxRetain", &both.at[0].context, 0);
        told.give("contexts differ", both.at[0].context != both.at[1].context);
        unsigned long long ids[2] = {};
        must("cuCtxGetId", both.at[0].context, &ids[0]);
        must("cuCtxGetId", both.at[1].context, &ids[1]);
        told.give("ids differ", ids[0] != ids[1]);
        told.give("id of the context of 1", static_cast<long long>(ids[1]));
        told.give("id of the context of 0", static_cast<long long>(ids[0]));
        const auto device = [&](CUcontext context) {
            CUdevice found = -5;
            const int result = call("cuCtxGetDevice_v2", &found, context);
            return number(result) + " " + number(found);
        };
        both.use(1);
        CUdevice found = -5;
        must("cuCtxGetDevice", &found);
        told.give("device", found);
        told.give("device of null", device(nullptr));
        told.give("device of 0", device(both.at[0].context));
        told.give("device of 1", device(both.at[1].context));
        unsigned flags = 0;
        must("cuCtxGetFlags", &flags);
        told.give("flags", flags);
        // The stack.
        must("cuCtxPushCurrent_v2", both.at[0].context);
        told.give("pushed", both.current());
        CUcontext popped{};
        must("cuCtxPopCurrent_v2", &popped);
        told.give("popped", both.name(popped) + ", " + both.current());
        CUcontext made{};
        told.give("create on 1", call("cuCtxCreate_v2", &made, 0u, 1));
        told.give("current, made", both.current());
        told.give("device of a new one", device(nullptr));
        told.give("create on 2", call("cuCtxCreate_v2", &popped, 0u, 2));
        must("cuCtxPopCurrent_v2", &popped);
        both.use(0);
        told.give("device of another", device(made));
        std::size_t limit = 0;
        must("cuCtxSetLimit", 0, std::size_t{4096});
        both.use(1);
        must("cuCtxGetLimit", &limit, 0);
        told.give("limit of 1 after 0 has set its own", static_cast<long long>(limit));
        // Budgets.
        const auto info = [&](std::size_t& free) {
            std::size_t total = 0;
            must("cuMemGetInfo_v2", &free, &total);
            return total;
        };
        std::size_t free0, free1, then0, then1;
        both.use(0);
        const std::size_t total0 = info(free0);
        both.use(1);
        const std::size_t total1 = info(free1);
        told.give("totals are equal", total0 == total1);
        std::size_t whole = 0;
        must("cuDeviceTotalMem_v2", &whole, 1);
        told.give("total is the device's", total1 == whole);
        CUdeviceptr memory = 0;
        must("cuMemAlloc_v2", &memory, 64 * page);
        info(then1);
        both.use(0);
        info(then0);
        told.give("free on 0 what is on 1", call("cuMemFree_v2", memory));
        both.use(1);
        info(then1);
        must("cuCtxSetCurrent", made);
        std::size_t in_made;
        info(in_made);
        told.give("destroy", call("cuCtxDestroy_v2", made));
        told.give("after destroy", both.current());
        both.use(1);
        told.give("reset of 1", call("cuDevicePrimaryCtxReset_v2", 1));
        told.give("state of 1, reset", state(1));
        told.give("state of 0, 1 is reset", state(0));
        told.give("synchronise 1, reset", call("cuCtxSynchronize"));
        told.give("device of 1, reset", device(both.at[1].context));
        both.use(0);
        told.give("synchronise 0, 1 is reset", call("cuCtxSynchronize"));
        CUcontext again{};
        must("cuDevicePrimaryCtxRetain", &again, 1);
        told.give("the same again", again == both.at[1].context);
        must("cuCtxGetId", again, &ids[1]);
        told.give("id again", static_cast<long long>(ids[1]));
        told.give("release of 0", call("cuDevicePrimaryCtxRelease_v2", 0));
        told.give("release of 0, again", call("cuDevicePrimaryCtxRelease_v2", 0));
        told.give("release of 2", call("cuDevicePrimaryCtxRelease_v2", 2));
        both.use(1);
        told.give("synchronise 1 at last", call("cuCtxSynchronize"));
    });
    in_process(answers, "green contexts", [](const Told& told) {
        Both both;
        both.start();
        CUdevResource resource{}, part{};
        told.give("resource of 1", list({number(call("cuDeviceGetDevResource", 1, &resource, 1)), number(resource.sm.smCount)}));
        unsigned groups = 1;
        told.give("split", list({number(call("cuDevSmResourceSplitByCount", &part, &groups, &resource, nullptr, 0u, 16u)), number(part.sm.smCount)}));
        CUdevResourceDesc description{};
        must("cuDevResourceGenerateDesc", &description, &part, 1u);
        CUgreenCtx green{};
        told.give("create on the other", call("cuGreenCtxCreate", &green, description, 0, 1u));
        told.give("create on its own", call("cuGreenCtxCreate", &green, description, 1, 1u));
        CUcontext context{};
        must("cuCtxFromGreenCtx", &context, green);
        CUdevice device = -5;
        told.give("green device", list({number(call("cuCtxGetDevice_v2", &device, context)), number(device)}));
        CUstream stream{};
        told.give("stream", call("cuGreenCtxStreamCreate", &stream, green, 1u, 0));
        told.give("device of the stream", list({number(call("cuStreamGetDevice", stream, &device)), number(device)}));
    });
}

} // namespace devices
