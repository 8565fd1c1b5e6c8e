// SPDX-License-Identifier: Apache-2.0
// Programs ask an attribute before they use a feature: what it promises has to be there, and what is there to be promised.
#include "runtime/device/device.h"
#include "runtime/shim/driver_table.h"

#include <catch2/catch.hpp>

#include <string>

using namespace ptarmigan;

namespace {

bool is_there(const std::string& name) {
    for (const shim::DriverEntry& entry : shim::driver_entries())
        if (name == entry.export_name)
            return entry.implemented;
    FAIL("the driver table has no " << name);
    return false;
}

} // namespace

TEST_CASE("device attributes: features are promised where their entries are implemented") {
    const struct {
        int id, value;
        const char* entry;
        bool promised;
    } rows[] = {
#define VALUE(id, name, value)
#define HOST(id, name, member)
#define FEATURE(id, name, value, entry) {id, value, #entry, true},
#define ABSENT(id, name, value, entry) {id, value, #entry, false},
#include "runtime/device/device_attributes.def"
#undef VALUE
#undef HOST
#undef FEATURE
#undef ABSENT
    };
    for (const auto& row : rows) {
        INFO("attribute " << row.id << ", " << row.entry << ": make its row FEATURE or ABSENT");
        CHECK(is_there(row.entry) == row.promised);
        CHECK(runtime::Device::get().attribute(row.id) == (row.promised ? row.value : 0));
    }
}
