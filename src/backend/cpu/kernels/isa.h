/* Every file of this folder is compiled once for each instruction set, with TL_ISA naming it
 * (baseline, avx2, avx512); cpu.c chooses the table to use at start.  A public name of the folder
 * is written TL_ISA_NAME(tl_thing) and becomes tl_thing_avx2 and so on. */
#ifndef TL_CPU_KERNELS_ISA_H
#define TL_CPU_KERNELS_ISA_H

#ifndef TL_ISA
#define TL_ISA baseline
#endif
#define TL_ISA_JOIN2(name, isa) name##_##isa
#define TL_ISA_JOIN(name, isa) TL_ISA_JOIN2(name, isa)
#define TL_ISA_NAME(name) TL_ISA_JOIN(name, TL_ISA)

#endif
