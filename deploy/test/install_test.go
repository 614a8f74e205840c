// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// helm does what the commands of helm do, with Helm's own code.
func (c *cluster) helm() *action.Configuration {
	c.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, space := c.Kubeconfig, namespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &space
	var config action.Configuration
	if err := config.Init(flags, namespace, "secret", c.Logf); err != nil {
		c.Fatal(err)
	}
	return &config
}

func (c *cluster) install(name, values string) {
	c.Helper()
	chart, given := loadChart(c.T, values)
	install := action.NewInstall(c.helm())
	install.ReleaseName, install.Namespace = name, namespace
	if _, err := install.RunWithContext(c.Context(), chart, given); err != nil {
		c.Fatalf("helm install %s with %s: %v", name, values, err)
	}
}

func (c *cluster) upgrade(name, values string) {
	c.Helper()
	chart, given := loadChart(c.T, values)
	upgrade := action.NewUpgrade(c.helm())
	upgrade.Namespace = namespace
	if _, err := upgrade.RunWithContext(c.Context(), name, chart, given); err != nil {
		c.Fatalf("helm upgrade %s with %s: %v", name, values, err)
	}
}

// test does what `helm test` does.
func (c *cluster) test(name string, patience time.Duration) error {
	c.Helper()
	test := action.NewReleaseTesting(c.helm())
	test.Namespace, test.Timeout = namespace, patience
	r, err := test.Run(name)
	if err == nil && r.Info.Status != release.StatusDeployed {
		c.Errorf("after its test, %s is %s", name, r.Info.Status)
	}
	return err
}

func (c *cluster) uninstall(name string) {
	c.Helper()
	if _, err := action.NewUninstall(c.helm()).Run(name); err != nil {
		c.Fatalf("helm uninstall %s: %v", name, err)
	}
}

// TestClusterRunsReleases installs each mode on a real API server and runs the program as the pods would. `helm test` fails while
// nothing schedules, and succeeds with the program. A change of values is an upgrade, and nothing is left after the removal.
// It catches objects that the API server rejects, a right that is missing, and a test that succeeds without a scheduler.
func TestClusterRunsReleases(t *testing.T) {
	c := startCluster(t, 4)

	c.install("trial", "{test: {deadlineSeconds: 3}, networkPolicy: {enabled: true}, roles: {viewers: [{kind: Group, name: engineers}]}}")
	if err := c.test("trial", limit); err == nil {
		t.Error("the test of a release succeeds although no kumiki runs")
	}
	p := c.run("trial-kumiki")
	c.upgrade("trial", "{gangs: {annotation: true, pfnet: true}, podAnnotations: {a: b}, commonLabels: {team: a}}")
	if err := c.test("trial", limit); err != nil {
		t.Errorf("the test of mode canary: %v", err)
	}
	p.end()
	c.uninstall("trial")

	c.install("main", "{mode: replace, flowControl: {shares: 50}, extraVolumes: [{name: data, emptyDir: {}}], extraVolumeMounts: [{name: data, mountPath: /data}], extraArgs: [--record=/data/record]}")
	p = c.run("main-kumiki")
	c.bound("app.kubernetes.io/instance=main", 3) // its own pods too
	if err := c.test("main", limit); err != nil {
		t.Errorf("the test of mode replace: %v", err)
	}

	c.install("second", "mode: shadow")
	shadow := c.run("second-kumiki")
	c.bound("app.kubernetes.io/instance=second", 1)
	if err := c.test("second", limit); err != nil {
		t.Errorf("the test of mode shadow: %v", err)
	}
	shadow.end()
	p.end()
	c.uninstall("second")
	c.uninstall("main")
	c.nothingIsLeft()
}

// nothingIsLeft compares with a cluster before any release, by the label of Helm.
func (c *cluster) nothingIsLeft() {
	c.Helper()
	ctx, all := c.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=Helm"}
	var left []string
	roles, err := c.client.RbacV1().ClusterRoles().List(ctx, all)
	if err != nil {
		c.Fatal(err)
	}
	for _, o := range roles.Items {
		left = append(left, "ClusterRole/"+o.Name)
	}
	bindings, err := c.client.RbacV1().ClusterRoleBindings().List(ctx, all)
	if err != nil {
		c.Fatal(err)
	}
	for _, o := range bindings.Items {
		left = append(left, "ClusterRoleBinding/"+o.Name)
	}
	configs, err := c.client.CoreV1().ConfigMaps(namespace).List(ctx, all)
	if err != nil {
		c.Fatal(err)
	}
	for _, o := range configs.Items {
		left = append(left, "ConfigMap/"+o.Name)
	}
	if len(left) > 0 {
		c.Errorf("after the removal of all releases there are %s", strings.Join(left, " "))
	}
}
