// SPDX-License-Identifier: Apache-2.0

// Package kubeadm owns the comparison of kumiki's image and kube-scheduler's in the static pod that kubeadm writes:
// kumiki's replaces the other one, which then replaces kumiki's again.
//
// The components are real: kubeadm writes the kubeconfig and the manifest, `make image` packs the image, and the
// commands of docs/migration.md change the manifest. Only the kubelet and the container runtime are replaced, by
// container_test.go: it starts the command of the manifest in the root file system of the image, with the manifest's
// mounts, as the user that the manifest or the image's configuration sets.
package kubeadm
