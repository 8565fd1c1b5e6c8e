// SPDX-License-Identifier: Apache-2.0
// Tables of cuGetExportTable: what NVIDIA's runtime library and libraries call in them. What an H100's driver answers:
// answers/table_answers_h100.txt.
#include "driver.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

const void* const* table(const char* digits) {
    CUuuid id;
    for (int i = 0; i < 16; ++i)
        id.bytes[i] = static_cast<char>(std::stoi(std::string(digits + 2 * i, 2), nullptr, 16));
    const void* found = nullptr;
    CHECK(cuGetExportTable(&found, &id) == 0);
    return static_cast<const void* const*>(found);
}

template <class... Arguments> int call_slot(const void* const* slots, std::size_t slot, Arguments... arguments) {
    auto entry = const_cast<void*>(slots[slot]);
    return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

} // namespace

TEST_CASE("export tables: no slot is without a function, and an unknown one answers an error") {
    const struct {
        const char* id;
        std::size_t slots, empty, unknown;
    } tables[] = {
        {"f8cff95121468b4eb9e2fb469e7c0dd9", 3, 0, 0},    {"6bd5fb6c5bf4e74a8987d93912fd9df9", 13, 10, 11},
        {"a094798c2e742e7493f20800200c0a66", 7, 0, 1},    {"42d85a8123f6cb478298f6e78a3aecdc", 3, 0, 1},
        {"263e88607cd2614392f6bbd5006dfa7e", 15, 0, 14},  {"d4082055bde6704b8d34ba123c66e1f2", 3, 0, 2},
        {"21318c60971432488ca641ff7324c8f2", 93, 0, 92},  {"6e163fbeb958444d835ce182aff1991e", 99, 0, 98},
        {"7cb63f9b9ca48e42a484beb66e6aed7f", 120, 0, 32},
    };
    for (const auto& row : tables) {
        INFO(row.id);
        const void* const* slots = table(row.id);
        REQUIRE(slots);
        CHECK(reinterpret_cast<std::uintptr_t>(slots[0]) == row.slots * 8);
        for (std::size_t i = 1; i < row.slots; ++i) CHECK((slots[i] != nullptr) == (i != row.empty));
        if (row.unknown == 0) continue; // every slot is known
        CHECK(call_slot(slots, row.unknown) == 801);
        CHECK(call_slot(slots, row.unknown) == 801);
    }
}

TEST_CASE("export tables: a setting by its name is none") {
    unsigned char out[8];
    std::memset(out, 0x77, sizeof out);
    CHECK(call_slot(table("6bd5fb6c5bf4e74a8987d93912fd9df9"), 12, &out[0], "DA_8b3537d1") == 0);
    for (unsigned char byte : out) CHECK(byte == 0x77);
}

TEST_CASE("export tables: the current context and the objects of streams") {
    CUcontext context = driver_test::context(), found = nullptr;
    const void* const* contexts = table("42d85a8123f6cb478298f6e78a3aecdc");
    CHECK(call_slot(contexts, 2, &found) == 0);
    CHECK(found == context);
    std::thread([&] { call_slot(contexts, 2, &found); }).join();
    CHECK(found == nullptr);
    const void* const* queries = table("21318c60971432488ca641ff7324c8f2");
    std::uint64_t answer = 7;
    CHECK(call_slot(queries, 4, context, &answer) == 0);
    CHECK(answer == 1);
    CHECK(call_slot(queries, 4, nullptr, &answer) == 0);
    CHECK(answer == 0);
    CUstream stream = nullptr;
    REQUIRE(cuStreamCreate(&stream, 1) == 0);
    void *object = nullptr, *other = nullptr;
    CHECK(call_slot(queries, 51, nullptr, stream, &object) == 0);
    CHECK(object != nullptr);
    CHECK(call_slot(queries, 51, context, nullptr, &other) == 0);
    CHECK(other != object);
    CHECK(call_slot(queries, 51, nullptr, nullptr, &other) == 400);
    unsigned long long id = 0;
    CHECK(call_slot(queries, 39, context, object, &answer) == 0);
    CHECK(cuStreamGetId(stream, &id) == 0);
    CHECK(answer == id);
    CHECK(call_slot(queries, 51, context, nullptr, &other) == 0);
    CHECK(call_slot(queries, 39, context, other, &answer) == 0);
    CHECK(cuStreamGetId(nullptr, &id) == 0);
    CHECK(answer == id);
    CHECK(cuStreamDestroy_v2(stream) == 0);
}

// So cuFFT finds the one kernel of a module; it takes any number but 1 for an error.
TEST_CASE("export tables: a module's kernels are visited without their names") {
    const CUcontext context = driver_test::context();
    const auto visit = [](void* user, CUfunction function) {
        static_cast<std::vector<CUfunction>*>(user)->push_back(function);
    };
    void (*const visitor)(void*, CUfunction) = visit;
    const void* const* modules = table("6e163fbeb958444d835ce182aff1991e");
    for (const unsigned count : {1u, 2u}) {
        std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
        for (unsigned i = 0; i < count; ++i) text += ".visible .entry k" + std::to_string(i) + "() { ret; }\n";
        CUmodule module = nullptr;
        REQUIRE(cuModuleLoadData(&module, text.c_str()) == 0);
        std::vector<CUfunction> visited;
        CHECK(call_slot(modules, 7, context, module, visitor, static_cast<void*>(&visited)) == int(count));
        REQUIRE(visited.size() == count);
        for (unsigned i = 0; i < count; ++i) {
            CUfunction named = nullptr;
            CHECK(cuModuleGetFunction(&named, module, ("k" + std::to_string(i)).c_str()) == 0);
            CHECK(named == visited[i]);
        }
        CHECK(cuModuleUnload(module) == 0);
    }
    std::vector<CUfunction> visited;
    CHECK(call_slot(modules, 7, context, CUmodule(nullptr), visitor, static_cast<void*>(&visited)) == 0);
    CHECK(visited.empty());
}

TEST_CASE("export tables: no stream is of a green context") {
    driver_test::context();
    void* green = &green;
    CHECK(cuStreamGetGreenCtx(nullptr, &green) == 0);
    CHECK(green == nullptr);
    CHECK(cuStreamGetGreenCtx(nullptr, nullptr) == 1);
}

// cuBLAS from CUDA 13.1 on asks so when it starts; not recorded on a GPU.
TEST_CASE("export tables: clusters of no kernel are those that the device can hold") {
    driver_test::context();
    CUlaunchAttribute cluster{};
    cluster.id = 4;
    cluster.value.clusterDim = {3, 1, 1};
    CUlaunchConfig config{3, 1, 1, 128, 1, 1, 0, nullptr, &cluster, 1};
    int clusters = 0;
    CHECK(cuOccupancyMaxActiveClusters(&clusters, nullptr, &config) == 0);
    CHECK(clusters > 0);
    cluster.value.clusterDim = {9, 1, 1};
    CHECK(cuOccupancyMaxActiveClusters(&clusters, nullptr, &config) == 912);
    CHECK(cuOccupancyMaxActiveClusters(nullptr, nullptr, &config) == 1);
}
