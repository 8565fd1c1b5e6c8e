// SPDX-License-Identifier: Apache-2.0
// A path tracer whose shapes and materials are called through tables of functions, as virtual calls are: every lane
// asks the same shape, and each calls the material that it has hit. Written once for CUDA C++, OpenCL C (which has no
// function pointers: a switch) and C++. The includer defines FUNCTION, GLOBAL, FMA and SQRT, and TABLE where
// there are tables.

typedef struct Ray {
    float ox, oy, oz, dx, dy, dz;
} Ray;
/// Where a ray meets a shape: how far away, and the normal there.
typedef struct Meeting {
    float far, nx, ny, nz;
} Meeting;
/// What a path has seen so far, and its random numbers.
typedef struct Path {
    float red, green, blue;
    unsigned random;
} Path;

FUNCTION float dot3(float ax, float ay, float az, float bx, float by, float bz) {
    return FMA(ax, bx, FMA(ay, by, az * bz));
}

FUNCTION float random_number(Path* path) {
    path->random = path->random * 747796405u + 2891336453u;
    unsigned word = ((path->random >> ((path->random >> 28) + 4)) ^ path->random) * 277803737u;
    return (float)(((word >> 22) ^ word) >> 8) * 5.9604645e-8f;
}

/// Shapes: x, y, z, radius or height, kind of shape, kind of material, red, green, blue, what the material wants.
#define SHAPE_WORDS 10

FUNCTION int hit_sphere(GLOBAL const float* shape, const Ray* ray, Meeting* meeting) {
    float x = ray->ox - shape[0], y = ray->oy - shape[1], z = ray->oz - shape[2];
    float half_b = dot3(x, y, z, ray->dx, ray->dy, ray->dz);
    float c = FMA(-shape[3], shape[3], dot3(x, y, z, x, y, z));
    float discriminant = FMA(half_b, half_b, -c);
    if (discriminant <= 0.0f) return 0;
    float root = SQRT(discriminant), far = -half_b - root;
    if (far < 1e-3f) far = root - half_b;
    if (far < 1e-3f || far >= meeting->far) return 0;
    meeting->far = far;
    meeting->nx = FMA(far, ray->dx, x) / shape[3];
    meeting->ny = FMA(far, ray->dy, y) / shape[3];
    meeting->nz = FMA(far, ray->dz, z) / shape[3];
    return 1;
}

FUNCTION int hit_floor(GLOBAL const float* shape, const Ray* ray, Meeting* meeting) {
    if (ray->dy > -1e-6f && ray->dy < 1e-6f) return 0;
    float far = (shape[3] - ray->oy) / ray->dy;
    if (far < 1e-3f || far >= meeting->far) return 0;
    meeting->far = far;
    meeting->nx = meeting->nz = 0.0f;
    meeting->ny = ray->dy < 0.0f ? 1.0f : -1.0f;
    return 1;
}

FUNCTION void turn_to(Ray* ray, float x, float y, float z) {
    float size = SQRT(dot3(x, y, z, x, y, z));
    ray->dx = x / size;
    ray->dy = y / size;
    ray->dz = z / size;
}

FUNCTION void take_colour(GLOBAL const float* shape, Path* path) {
    path->red *= shape[6];
    path->green *= shape[7];
    path->blue *= shape[8];
}

/// Materials: 0 where the path ends.
FUNCTION int scatter_dull(GLOBAL const float* shape, Ray* ray, const Meeting* meeting, Path* path) {
    float x = FMA(2.0f, random_number(path), -1.0f), y = FMA(2.0f, random_number(path), -1.0f),
          z = FMA(2.0f, random_number(path), -1.0f);
    float square = dot3(x, y, z, x, y, z);
    if (square < 1e-4f) square = 1.0f;
    float size = SQRT(square);
    turn_to(ray, FMA(0.99f, x / size, meeting->nx), FMA(0.99f, y / size, meeting->ny),
            FMA(0.99f, z / size, meeting->nz));
    take_colour(shape, path);
    return 1;
}

FUNCTION int scatter_mirror(GLOBAL const float* shape, Ray* ray, const Meeting* meeting, Path* path) {
    float along = -2.0f * dot3(ray->dx, ray->dy, ray->dz, meeting->nx, meeting->ny, meeting->nz);
    float fuzz = shape[9];
    float x = random_number(path), y = random_number(path), z = random_number(path);
    turn_to(ray, FMA(along, meeting->nx, FMA(fuzz, x, ray->dx)), FMA(along, meeting->ny, FMA(fuzz, y, ray->dy)),
            FMA(along, meeting->nz, FMA(fuzz, z, ray->dz)));
    take_colour(shape, path);
    return 1;
}

FUNCTION int scatter_glass(GLOBAL const float* shape, Ray* ray, const Meeting* meeting, Path* path) {
    float nx = meeting->nx, ny = meeting->ny, nz = meeting->nz, ratio = 1.0f / shape[9];
    float cosine = -dot3(ray->dx, ray->dy, ray->dz, nx, ny, nz);
    if (cosine < 0.0f) {
        nx = -nx;
        ny = -ny;
        nz = -nz;
        cosine = -cosine;
        ratio = shape[9];
    }
    float k = FMA(-ratio * ratio, FMA(-cosine, cosine, 1.0f), 1.0f);
    float back = 1.0f - cosine, fifth = back * back * (back * back) * back;
    float reflected = FMA(0.96f, fifth, 0.04f);
    if (k <= 0.0f || random_number(path) < reflected) {
        float along = 2.0f * cosine;
        turn_to(ray, FMA(along, nx, ray->dx), FMA(along, ny, ray->dy), FMA(along, nz, ray->dz));
    } else {
        float along = FMA(ratio, cosine, -SQRT(k));
        turn_to(ray, FMA(along, nx, ratio * ray->dx), FMA(along, ny, ratio * ray->dy), FMA(along, nz, ratio * ray->dz));
    }
    return 1;
}

FUNCTION int scatter_light(GLOBAL const float* shape, Ray* ray, const Meeting* meeting, Path* path) {
    take_colour(shape, path);
    return 0;
}

#ifdef TABLE
TABLE int (*shape_functions[2])(GLOBAL const float*, const Ray*, Meeting*) = {hit_sphere, hit_floor};
TABLE int (*material_functions[4])(GLOBAL const float*, Ray*, const Meeting*, Path*) = {scatter_dull, scatter_mirror,
                                                                                        scatter_glass, scatter_light};
#define CALL_SHAPE(kind, ...) shape_functions[kind](__VA_ARGS__)
#define CALL_MATERIAL(kind, ...) material_functions[kind](__VA_ARGS__)
#else
FUNCTION int call_shape(int kind, GLOBAL const float* shape, const Ray* ray, Meeting* meeting) {
    return kind == 0 ? hit_sphere(shape, ray, meeting) : hit_floor(shape, ray, meeting);
}
FUNCTION int call_material(int kind, GLOBAL const float* shape, Ray* ray, const Meeting* meeting, Path* path) {
    switch (kind) {
    case 0: return scatter_dull(shape, ray, meeting, path);
    case 1: return scatter_mirror(shape, ray, meeting, path);
    case 2: return scatter_glass(shape, ray, meeting, path);
    default: return scatter_light(shape, ray, meeting, path);
    }
}
#define CALL_SHAPE call_shape
#define CALL_MATERIAL call_material
#endif

/// A path's brightness through a pixel: up to eight meetings.
FUNCTION float trace_path(GLOBAL const float* shapes, int count, int px, int py, int size) {
    Path path = {1.0f, 1.0f, 1.0f, (unsigned)(py * size + px) * 9781u + 1u};
    Ray ray = {0.0f, 1.0f, 4.0f, 0.0f, 0.0f, 0.0f};
    float x = (float)px + random_number(&path), y = (float)py + random_number(&path);
    turn_to(&ray, x / (float)size - 0.5f, 0.5f - y / (float)size, -1.0f);
    int goes_on = 1;
    for (int bounce = 0; bounce < 8 && goes_on; ++bounce) {
        Meeting meeting = {1e30f, 0.0f, 0.0f, 0.0f};
        int met = -1;
        for (int i = 0; i < count; ++i) {
            GLOBAL const float* shape = shapes + i * SHAPE_WORDS;
            if (CALL_SHAPE((int)shape[4], shape, &ray, &meeting)) met = i;
        }
        if (met < 0) {
            float up = FMA(0.5f, ray.dy, 0.5f);
            path.red *= FMA(-0.5f, up, 1.0f);
            path.green *= FMA(-0.3f, up, 1.0f);
            break;
        }
        ray.ox = FMA(meeting.far, ray.dx, ray.ox);
        ray.oy = FMA(meeting.far, ray.dy, ray.oy);
        ray.oz = FMA(meeting.far, ray.dz, ray.oz);
        GLOBAL const float* shape = shapes + met * SHAPE_WORDS;
        goes_on = CALL_MATERIAL((int)shape[5], shape, &ray, &meeting, &path);
    }
    return dot3(path.red, path.green, path.blue, 0.3f, 0.6f, 0.1f);
}
