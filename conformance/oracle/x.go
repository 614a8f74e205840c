package oracle

import (
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/component-base/featuregate"
	_ "k8s.io/component-helpers/resource"
	_ "k8s.io/kube-scheduler/framework"
	_ "k8s.io/kubernetes/pkg/kubelet/lifecycle"
	_ "k8s.io/kubernetes/pkg/scheduler"
	_ "k8s.io/utils/clock/testing"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/yaml"
)
