/* tests/session/fastmath.c: a library that was built with -ffast-math: when it is loaded, its start-up code
 * lets the processor flush denormal numbers to zero on the loading thread (gcc before 13), which every thread
 * started later inherits.
 */
float fastmath_scale(float x);
__attribute__((visibility("default"))) float fastmath_scale(float x) { return x * 3; }
