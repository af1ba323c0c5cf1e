/* dlsym, as every program in which we are calls it. Assembly, because glibc's dlsym looks at its return address to know
   who asks (RTLD_NEXT, RTLD_DEFAULT): a function in C would stand between, unless the compiler happens to make a jump of
   the call. So everything that isn't ours is a jump, and the stack is as the caller left it.

   Ours are names that begin with "cudnn", looked up in a real handle: lookup.cpp answers those. */

#if defined(__x86_64__)

#ifdef __CET__
#include <cet.h>                                /* the mark of code that bears a shadow stack, which this does */
#endif

        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:                                          /* rdi: handle, rsi: name */
        .cfi_startproc
        endbr64
        movq    convpin_next_dlsym(%rip), %rax
        testq   %rax, %rax
        jz      .Lfind
.Lfound:
        leaq    1(%rdi), %rcx                   /* RTLD_NEXT is -1, RTLD_DEFAULT 0 */
        cmpq    $1, %rcx
        jbe     .Lnot_ours
        testq   %rsi, %rsi
        jz      .Lnot_ours
        cmpb    $'c', 0(%rsi)
        jne     .Lnot_ours
        cmpb    $'u', 1(%rsi)
        jne     .Lnot_ours
        cmpb    $'d', 2(%rsi)
        jne     .Lnot_ours
        cmpb    $'n', 3(%rsi)
        jne     .Lnot_ours
        cmpb    $'n', 4(%rsi)
        jne     .Lnot_ours
        movq    (%rsp), %rdx                    /* who asks */
        jmp     convpin_look_up
.Lnot_ours:
        jmp     *%rax
.Lfind:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                        /* the stack is a multiple of 16 at a call */
        .cfi_adjust_cfa_offset 8
        call    convpin_find_next_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     .Lfound
        .cfi_endproc
        .size   dlsym, . - dlsym

#elif defined(__aarch64__)

        .text
        .globl  dlsym
        .type   dlsym, %function
        .p2align 4
dlsym:                                          /* x0: handle, x1: name, x30: who asks */
        .cfi_startproc
        hint    #34                             /* bti c */
        adrp    x16, convpin_next_dlsym
        ldr     x16, [x16, :lo12:convpin_next_dlsym]
        cbz     x16, .Lfind
.Lfound:
        add     x17, x0, #1                     /* RTLD_NEXT is -1, RTLD_DEFAULT 0 */
        cmp     x17, #1
        b.ls    .Lnot_ours
        cbz     x1, .Lnot_ours
        ldrb    w17, [x1, #0]
        cmp     w17, #'c'
        b.ne    .Lnot_ours
        ldrb    w17, [x1, #1]
        cmp     w17, #'u'
        b.ne    .Lnot_ours
        ldrb    w17, [x1, #2]
        cmp     w17, #'d'
        b.ne    .Lnot_ours
        ldrb    w17, [x1, #3]
        cmp     w17, #'n'
        b.ne    .Lnot_ours
        ldrb    w17, [x1, #4]
        cmp     w17, #'n'
        b.ne    .Lnot_ours
        mov     x2, x30
        b       convpin_look_up
.Lnot_ours:
        br      x16
.Lfind:
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        bl      convpin_find_next_dlsym
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_adjust_cfa_offset -32
        b       .Lfound
        .cfi_endproc
        .size   dlsym, . - dlsym

#else
#error "dlsym is written for x86-64 and aarch64, where cuDNN is"
#endif

        .hidden convpin_next_dlsym
        .hidden convpin_find_next_dlsym
        .hidden convpin_look_up
        .section .note.GNU-stack, "", %progbits
