// SPDX-License-Identifier: Apache-2.0

// Package seam owns how upstream's own integration tests of the scheduler run against kumiki, unchanged: they create
// their scheduler by scheduler.New alone, and package scheduler below has that function. tools/seam.sh (make seam)
// puts it into a copy of the module k8s.io/kubernetes under out/, compiles a package of tests, and runs each test in
// a process of its own; report writes tests.md. The module cache cannot be replaced file by file (go build -overlay
// refuses that), so the copy is a tree of hard links.
//
// It is a module of its own, because its requirement of k8s.io/kubernetes is the copy.
package seam

import (
	// What upstream's tests import, so that go.sum has it.
	_ "github.com/google/go-cmp/cmp"
	_ "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	_ "k8s.io/component-base/featuregate/testing"
	_ "k8s.io/component-base/metrics/testutil"
	_ "k8s.io/component-helpers/nodedeclaredfeatures/testing"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	_ "k8s.io/kubernetes/plugin/pkg/admission/priority"
	_ "k8s.io/kubernetes/test/integration/framework"
	_ "k8s.io/kubernetes/test/integration/scheduler"
	_ "k8s.io/kubernetes/test/integration/scheduler/podgroup/stepsframework"
	_ "k8s.io/kubernetes/test/integration/util"
	_ "k8s.io/kubernetes/test/utils/image"
	_ "k8s.io/kubernetes/test/utils/ktesting"
	_ "k8s.io/utils/ptr"
)
