// SPDX-License-Identifier: Apache-2.0
// Questions about sixteen bytes at once. Bit i of an answer speaks of byte i:
//   equal_bytes(at, c)  it is `c`
//   name_bytes(at)      it can be part of an identifier behind its first character: a letter, a digit, _ or $
#pragma once

#if defined(__x86_64__)
#include "frontend/parse/bytes_x86.h" // IWYU pragma: export
#elif defined(__aarch64__)
#include "frontend/parse/bytes_aarch64.h" // IWYU pragma: export
#endif
