// SPDX-License-Identifier: Apache-2.0
// Classes whose virtual functions and tables are spread over the files of linked_shapes.
#pragma once

#ifdef __CUDACC__
struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual int scaled(int factor) const; // in linked_shapes_device.cu
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int side) : side(side) {}
    __device__ int area() const override; // in linked_shapes_device.cu
};
struct Box : Shape {
    int width, height;
    __device__ Box(int width, int height) : width(width), height(height) {}
    __device__ int area() const override { return width * height; } // inline: its table is in both files
    __device__ int scaled(int factor) const override;               // in linked_shapes.cu
};
#endif
