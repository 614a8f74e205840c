// SPDX-License-Identifier: Apache-2.0

// Command release builds, signs, verifies and publishes the files of a release.
//
//	release build --version v0.1.0 --image bin/image --out out/release [--url ADDRESS]
//	release sign --key KEY.pem out/release
//	release verify [--key PUBLIC.pem] out/release
//	release push --image REPOSITORY --charts REPOSITORY out/release
//
// build compiles the programs for each platform without cgo and without paths, and writes archives, the image, the
// chart, the manifest for krew, bills of materials, provenance, release notes and SHA256SUMS. The same commit, version
// and Go release give the same bytes in every directory.
//
// sign takes a private key (ECDSA or Ed25519, PKCS #8 in PEM) and writes a signature of SHA256SUMS and an envelope
// around the provenance (DSSE). Signing by an identity without a key needs services on the network;
// .github/workflows/release.yml does that with cosign.
//
// Rejected: goreleaser, since it needs a configuration in its own language for what is a page of Go here, and builds
// neither the image nor the chart reproducibly; `helm package`, since it writes the present time into the archive.
package main
