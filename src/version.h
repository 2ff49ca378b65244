/* The version of the program and of the library: the one place that says it. */
#ifndef TL_VERSION_H
#define TL_VERSION_H

#define TL_VERSION "0.1.0"

#endif
