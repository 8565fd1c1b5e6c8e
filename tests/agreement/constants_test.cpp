// SPDX-License-Identifier: Apache-2.0
// Initial values against the bytes in ptxas' cubins (constants.txt, made by record_constants.py).
#include "frontend/module_loader.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <fstream>
#include <iostream>

namespace ptarmigan::test {

namespace {

/// The bytes of the one variable as hexadecimal digits, "-" where the text is refused.
std::string initial_value(const std::string& declaration) {
    const auto loader = ptx::ModuleLoader::load(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global " + declaration + "\n", "constants");
    if (!loader->ok()) return "-";
    const ptx::Variable& variable = loader->module().variables.at(0);
    std::string digits;
    for (std::uint8_t byte : variable.init) digits += fmt::format("{:02x}", byte);
    digits.resize(2 * variable.size, '0');
    return digits;
}

} // namespace

TEST_CASE("initial values have the bytes that ptxas gives them") {
    std::ifstream in(PTARMIGAN_AGREEMENT_DIR "/constants.txt");
    REQUIRE(in);
    unsigned accepted = 0, refused = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        const std::size_t space = line.find(' ');
        const std::string expected = line.substr(0, space), declaration = line.substr(space + 1);
        ++(expected == "-" ? refused : accepted);
        INFO(declaration);
        CHECK(initial_value(declaration) == expected);
    }
    std::cout << accepted << " initial values, " << refused << " that are refused\n";
    CHECK(accepted > 1000);
    CHECK(refused > 400);
}

} // namespace ptarmigan::test
