// A C++ program that calls a function of MLIR's, with mgpu_rt in place of LLVM's
// mlir_rocm_runtime: only the link line differs.
//
// Prints:
//
//     scaled: 1.5 3 4.5 6
#include "memref.h"

#include <iostream>
#include <vector>

extern "C" void _mlir_ciface_scale(memref *numbers, float factor); // of scale.mlir

int main() {
    std::vector<float> numbers = {1, 2, 3, 4};
    memref view = memref_of(numbers.data(), static_cast<intptr_t>(numbers.size()));
    _mlir_ciface_scale(&view, 1.5f);

    std::cout << "scaled:";
    for (float number : numbers)
        std::cout << ' ' << number;
    std::cout << '\n';
    return numbers == std::vector<float>{1.5f, 3, 4.5f, 6} ? 0 : 1;
}
