// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	upstreamconfig "k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	upstream "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/apis/config"
)

// setFlags changes each flag that changes the configuration.
var setFlags = []string{
	"--kube-api-qps=1000", "--kube-api-burst=2000", "--min-resync-period=1h", "--root-ca-file=ca.crt",
	"--concurrent-gc-syncs=10", "--terminated-pod-gc-threshold=7", "--pvclaimbinder-sync-period=1s",
	"--node-monitor-grace-period=3s", "--node-startup-grace-period=4s", "--node-eviction-rate=10",
}

// elsewhere are parts of the configuration that the controllers of the table do not read: name of the field -> why.
var elsewhere = map[string]string{
	"Generic":                    "compared below; the rest is leader election, serving and the list of controllers",
	"KubeCloudShared":            "compared below; the rest belongs to cloud providers",
	"ServiceController":          "belongs to cloud providers",
	"GarbageCollectorController": "compared below; ignored resources have no order",
}

// TestSettingsAreThoseOfKubeControllerManager: with and without flags, the controllers get the settings that
// kube-controller-manager gives them.
func TestSettingsAreThoseOfKubeControllerManager(t *testing.T) {
	for _, args := range [][]string{nil, setFlags} {
		o, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := reflect.ValueOf(o.config), reflect.ValueOf(upstreamSettings(t, args))
		for i := range ours.NumField() {
			name := ours.Type().Field(i).Name
			if elsewhere[name] == "" && !reflect.DeepEqual(ours.Field(i).Interface(), theirs.Field(i).Interface()) {
				t.Errorf("%v: %s is %+v, upstream has %+v", args, name, ours.Field(i), theirs.Field(i))
			}
		}
		got, want := o.config, theirs.Interface().(config.KubeControllerManagerConfiguration)
		for name, pair := range map[string][2]any{
			"client":         {got.Generic.ClientConnection, want.Generic.ClientConnection},
			"resync period":  {got.Generic.MinResyncPeriod, want.Generic.MinResyncPeriod},
			"start interval": {got.Generic.ControllerStartInterval, want.Generic.ControllerStartInterval},
			"monitor period": {nodeMonitorPeriod(&environment{config: got}),
				nodeMonitorPeriod(&environment{config: want})},
			"collector": {got.GarbageCollectorController.ConcurrentGCSyncs,
				want.GarbageCollectorController.ConcurrentGCSyncs},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%v: %s is %+v, upstream has %+v", args, name, pair[0], pair[1])
			}
		}
	}
}

// upstreamSettings returns what kube-controller-manager makes of flags.
func upstreamSettings(t *testing.T, args []string) config.KubeControllerManagerConfiguration {
	t.Helper()
	s, fs := upstreamFlags(t)
	if err := fs.Parse(append([]string{"--secure-port=0"}, args...)); err != nil {
		t.Fatal(err)
	}
	var c upstreamconfig.Config
	if err := s.ApplyTo(&c, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	return c.ComponentConfig
}

func upstreamFlags(t *testing.T) (*upstream.KubeControllerManagerOptions, *pflag.FlagSet) {
	t.Helper()
	s, err := upstream.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range s.Flags(nil, nil, nil).FlagSets {
		fs.AddFlagSet(set)
	}
	return s, fs
}

// TestFlagsAreThoseOfKubeControllerManager: each flag has the name and the default of upstream's, and the test above
// sets each that changes the configuration.
func TestFlagsAreThoseOfKubeControllerManager(t *testing.T) {
	_, ours, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	ofLogs := pflag.NewFlagSet("", pflag.ContinueOnError)
	logsapi.AddFlags(logs.NewOptions(), ofLogs)
	_, theirs := upstreamFlags(t)
	ours.VisitAll(func(f *pflag.Flag) {
		same := theirs.Lookup(f.Name)
		if same == nil || same.DefValue != f.DefValue && f.Name != "feature-gates" {
			t.Errorf("--%s has the default %q, upstream %+v", f.Name, f.DefValue, same)
		}
		ofProcess := ofLogs.Lookup(f.Name) != nil ||
			slices.Contains([]string{"kubeconfig", "controllers", "feature-gates"}, f.Name)
		compared := slices.ContainsFunc(setFlags, func(a string) bool { return strings.HasPrefix(a, "--"+f.Name+"=") })
		if compared == ofProcess {
			t.Errorf("--%s: compared with upstream: %v", f.Name, compared)
		}
	})
}

// TestChosenControllers: a choice takes the place of the default, which is all of them.
func TestChosenControllers(t *testing.T) {
	all := Names()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, all},
		{[]string{"--v=1", "--controllers=job-controller,resourcequota-controller"},
			[]string{names.JobController, names.ResourceQuotaController}},
		{[]string{"--controllers=job-controller", "--controllers=cronjob-controller"},
			[]string{names.JobController, names.CronJobController}},
		{[]string{"--controllers=*,-job-controller"},
			slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == names.JobController })},
		{[]string{"--controllers=-job-controller"}, nil},
	} {
		o, err := parse(c.args)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !o.enabled(n) })
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.args, got, c.want)
		}
	}
}

// TestWrongFlags: the error says what is possible.
func TestWrongFlags(t *testing.T) {
	for arg, want := range map[string]string{
		"--leader-elect=true":                "unknown flag: --leader-elect; the flags are --concurrent-gc-syncs, ",
		"--controllers=endpoints-controller": `a local cluster has no "endpoints-controller"; it has namespace-`,
		"--controllers=-ttl-controller":      `a local cluster has no "ttl-controller"; it has namespace-`,
		"--kube-api-qps=many":                `invalid argument "many" for "--kube-api-qps"`,
		"job-controller":                     `"job-controller" is not a flag`,
	} {
		if err := Check([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
	if code := Run(nil); code != exitUsage {
		t.Errorf("without a kubeconfig: exit code %d", code)
	}
}

// TestTableOfControllers: no name occurs twice, and each is one of kube-controller-manager's.
func TestTableOfControllers(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range table {
		if seen[c.name] || c.account == "" || c.build == nil {
			t.Errorf("row %q is incomplete, or occurs twice", c.name)
		}
		seen[c.name] = true
	}
	if len(table) != 24 {
		t.Errorf("%d controllers, want 24: change docs, and the test of each, too", len(table))
	}
}
