"""Which files are images by their name: of the formats that are read, and of others."""

READ = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".bmp", ".gif", ".webp")
NOT_READ = (
    ".jp2", ".j2k", ".jpx", ".jxl", ".heic", ".heif", ".avif", ".tga", ".psd",
    ".ppm", ".pgm", ".pbm", ".pnm", ".exr", ".hdr", ".dng", ".cr2", ".nef", ".arw", ".npy", ".dcm", ".nii",
    ".dm3", ".dm4", ".mrc", ".czi", ".nd2", ".lif", ".oib", ".oif",
)  # fmt: skip
