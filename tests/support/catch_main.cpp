// SPDX-License-Identifier: Apache-2.0
// The one translation unit with Catch2's main function; every unit test executable links it.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
