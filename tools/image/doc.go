// SPDX-License-Identifier: Apache-2.0

// Command image packs static binaries into container images without a daemon and without a base image: nothing is
// pulled, and the same binaries give the same bytes on every machine.
//
//	image build --binary linux/amd64=FILE --binary linux/arm64=FILE --out DIR
//	image check DIR/kumiki.oci.tar
//	image unpack DIR/kumiki.oci.tar BUNDLE
//
// build writes DIR/NAME.oci.tar (an OCI image layout with one index over all platforms), DIR/NAME-linux-ARCH.tar (for
// `docker load` and `ctr images import`) and DIR/NAME-linux-ARCH.spdx.json (what is in the binary, by its own build
// information). check reads the layout back by its digests, unpacks the image of this machine's architecture and runs
// the binary out of it. unpack writes that image to BUNDLE/rootfs and its configuration to BUNDLE/config.json.
//
// A referrer with the bill of materials was not chosen: few tools read referrers out of a layout, and every scanner reads
// the file that stands in the image beside the binary.
package main
