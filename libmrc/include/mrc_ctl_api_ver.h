/* Versions of the API of mrc_ctl.h: which one this header has, and which one a program asks for.
 *
 * A program may define MRC_CTL_API_VER_USED before it includes mrc_ctl.h; declarations of later versions are left out then. */
#ifndef MRCLAB_MRC_CTL_API_VER_H
#define MRCLAB_MRC_CTL_API_VER_H

/* 8 bits of major version, 8 of minor, 16 of subminor */
#define MRC_CTL_API_VER_MAJOR_OFFSET 24
#define MRC_CTL_API_VER_MINOR_OFFSET 16
#define MRC_CTL_API_VER_SUBMINOR_OFFSET 0
#define MRC_CTL_API_VER(major, minor, subminor)                                               \
    ((major) << MRC_CTL_API_VER_MAJOR_OFFSET | (minor) << MRC_CTL_API_VER_MINOR_OFFSET | (subminor))

#define MRC_CTL_API_VER_LATEST MRC_CTL_API_VER(0xFF, 0xFF, 0xFFFF) /* a program asks for the newest that the header has */
#define MRC_CTL_API_CURRENT_VERSION MRC_CTL_API_VER(1, 0, 1)
#define MRC_CTL_API_LAST_SUPPORTED_VERSION MRC_CTL_API_VER(0, 0, 0)
#define MRC_CTL_VENDOR_API_CURRENT_VERSION MRC_CTL_API_VER(1, 0, 0)
#define MRC_CTL_VENDOR_API_LAST_SUPPORTED_VERSION MRC_CTL_API_VER(0, 0, 0)

#if defined MRC_CTL_API_VER_USED && MRC_CTL_API_VER_USED == MRC_CTL_API_VER_LATEST
#undef MRC_CTL_API_VER_USED
#endif
#ifndef MRC_CTL_API_VER_USED
#define MRC_CTL_API_VER_USED MRC_CTL_API_CURRENT_VERSION
#endif
#if MRC_CTL_API_VER_USED > MRC_CTL_API_CURRENT_VERSION
#error "MRC_CTL_API_VER_USED must be at most MRC_CTL_API_CURRENT_VERSION"
#endif

#if defined MRC_CTL_VENDOR_API_VER_USED && MRC_CTL_VENDOR_API_VER_USED == MRC_CTL_API_VER_LATEST
#undef MRC_CTL_VENDOR_API_VER_USED
#endif
#ifndef MRC_CTL_VENDOR_API_VER_USED
#define MRC_CTL_VENDOR_API_VER_USED MRC_CTL_VENDOR_API_CURRENT_VERSION
#endif
#if MRC_CTL_VENDOR_API_VER_USED > MRC_CTL_VENDOR_API_CURRENT_VERSION
#error "MRC_CTL_VENDOR_API_VER_USED must be at most MRC_CTL_VENDOR_API_CURRENT_VERSION"
#endif

#endif
