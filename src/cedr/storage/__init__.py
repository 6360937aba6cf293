"""Files that survive crashes: written whole or not at all, synced, with checksums, by one writer at a time.

disk       everything that is done to files on a local disk
folder     a folder of files, on a local disk or in a remote store
remote     remote stores: buckets (object_store) and what Arrow reaches (arrow_store), with their remote_settings
seal       checksums: is a file the one that was written?
plain      values as bytes and back, without pickle
tables     arrays and frames as Arrow IPC streams
tree       snapshots as JSON with tables
snapshots  snapshots as files: a manifest and parts that later ones share
lock       one driver per local checkpoint
epoch      one driver per remote checkpoint: the newest
private    folders below the shared temporary folder that only their owner can enter
processes  processes as the operating system lists them
"""
