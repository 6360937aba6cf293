"""Files that survive crashes: written whole or not at all, synced, with checksums, by one writer at a time.

disk       everything that is done to files on a local disk
folder     a folder of files, on a local disk or anywhere Arrow can write
seal       checksums: is a file the one that was written?
plain      values as bytes and back, without pickle
tables     arrays and frames as Arrow IPC streams
tree       snapshots as JSON with tables
snapshots  snapshots as files: a manifest and parts that later ones share
lock       one driver per checkpoint
private    folders below the shared temporary folder that only their owner can enter
processes  processes as the operating system lists them
"""
