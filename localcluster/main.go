// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
	_ "k8s.io/component-base/cli"
	_ "sigs.k8s.io/yaml"
	_ "pgregory.net/rapid"
)

func main() {}
