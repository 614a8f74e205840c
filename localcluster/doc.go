// SPDX-License-Identifier: Apache-2.0

// Command kumiki-localcluster runs a real Kubernetes control plane with fake
// nodes on this machine: etcd, kube-apiserver, the controllers that scheduling
// needs and KWOK nodes, each as a child process of one supervisor. It owns the
// command line; what runs is owned by packages supervise, roles and fakenodes.
package main
