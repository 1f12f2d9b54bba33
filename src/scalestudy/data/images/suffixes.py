"""File name extensions of images: of supported and of unsupported formats."""

READ = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".bmp", ".gif", ".webp")
NOT_READ = (
    ".jp2", ".j2k", ".jpx", ".jxl", ".heic", ".heif", ".avif", ".tga", ".psd",
    ".ppm", ".pgm", ".pbm", ".pnm", ".exr", ".hdr", ".dng", ".cr2", ".nef", ".arw", ".npy", ".dcm", ".nii",
    ".dm3", ".dm4", ".mrc", ".czi", ".nd2", ".lif", ".oib", ".oif",
)  # fmt: skip
