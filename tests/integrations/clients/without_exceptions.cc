// A program that has neither exceptions nor run-time types includes every header of the component.
#include <ashlar/ashlar.h>

int main() { return ashlar::Options{}.expandable_segments ? 1 : 0; }
