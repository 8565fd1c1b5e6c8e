// SPDX-License-Identifier: Apache-2.0
// Which kernels of a text are compiled ahead of their launches.
#include "runtime/module/launch_forecast.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using ptarmigan::runtime::LaunchForecast;
using Indices = std::vector<std::uint32_t>;

TEST_CASE("launch forecast: names of one template's instances have a beginning in common") {
    using ptarmigan::runtime::family_name;
    CHECK(family_name("_ZN3cub6detail4scan20DeviceScanInitKernelINS0_13TileStateIiEEEEvT_i") ==
          "_ZN3cub6detail4scan20DeviceScanInitKernel");
    CHECK(family_name("_Z6kernelIiEvPT_") == "_Z6kernel");
    CHECK(family_name("_Z6kernelPf") == "_Z6kernel");
    CHECK(family_name("kernel") == "kernel");
    CHECK(family_name("_ZN99short") == "_ZN99short"); // no mangled name
    CHECK(family_name("_Z99999999999999999999999") == "_Z99999999999999999999999");
    CHECK(family_name("_Z").size() == 2);
}

TEST_CASE("launch forecast: of instances for two widths of offsets the first is likely, or the one that is used") {
    const std::vector<std::string> names{"_Z4initIiEvT_", "_Z4scanIPfiEvT_T0_", "_Z4initIlEvT_", "_Z4scanIPflEvT_T0_",
                                         "_Z4sortIPfjEvT_T0_", "_Z4sortIPfmEvT_T0_", "_Z3sumIPflEvT_T0_"};
    LaunchForecast forecast(names);
    forecast.note_launch(0);
    CHECK(forecast.behind(0, 8) == Indices{1, 4, 6});
    CHECK(forecast.behind(0, 2) == Indices{1, 4});
    forecast.note_launch(1);
    CHECK(forecast.behind(0, 2) == Indices{4}); // what is launched counts
    CHECK(forecast.behind(6, 2).empty());

    LaunchForecast large(names);
    large.note_launch(2);
    CHECK(large.behind(2, 8) == Indices{3, 5, 6});
    CHECK(large.behind(0, 8) == Indices{3, 5, 6});
}

TEST_CASE("launch forecast: instances of a function that was left out are not likely until one is launched") {
    LaunchForecast forecast({"_Z3oneIaEvT_", "_Z4tileIaEvT_", "_Z5sweepIaEvT_", "_Z3oneIbEvT_", "_Z4tileIbEvT_",
                             "_Z5sweepIbEvT_"});
    forecast.note_launch(1);
    CHECK(forecast.behind(1, 8) == Indices{2, 3, 4, 5}); // what is before the first launch says nothing
    forecast.note_launch(2);
    forecast.note_launch(4);
    CHECK_FALSE(forecast.is_likely(3)); // between 2 and 4
    CHECK_FALSE(forecast.is_likely(0));
    CHECK(forecast.is_likely(5));
    forecast.note_launch(3);
    CHECK(forecast.is_likely(0));
}
