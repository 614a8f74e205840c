// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

// settings is the file that every scheduler is started with: a KubeSchedulerConfiguration that says how the API server
// is reached and leaves the rest at its default.
func settings(kubeconfig string, qps float32, burst int) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  contentType: application/vnd.kubernetes.protobuf
  qps: %g
  burst: %d
`, kubeconfig, qps, burst)
}

// settingsWith is the same for a workload that wants its scheduler configured: what it says holds, but for how the API
// server is reached. Percent above 0 is percentageOfNodesToScore.
func settingsWith(config, kubeconfig string, qps float32, burst, percent int) (string, error) {
	var ours, theirs map[string]any // field -> value
	if err := yaml.Unmarshal([]byte(settings(kubeconfig, qps, burst)), &ours); err != nil {
		return "", err
	}
	if err := yaml.Unmarshal([]byte(config), &theirs); err != nil {
		return "", fmt.Errorf("the configuration of the scheduler: %w", err)
	}
	if theirs == nil {
		theirs = ours
	}
	theirs["leaderElection"], theirs["clientConnection"] = ours["leaderElection"], ours["clientConnection"]
	if percent > 0 {
		theirs["percentageOfNodesToScore"] = percent
	}
	text, err := yaml.Marshal(theirs)
	return string(text), err
}

// contestant is what the name of a scheduler says: BASE@PERCENT~PLUGIN or BASE@SETTINGS~PLUGIN.
type contestant struct {
	base string // one of the schedulers, or the path of a program
	// percent is percentageOfNodesToScore; 0 leaves it to the scheduler. settings are those that it is configured
	// with; empty for the default. A contestant has one of the two.
	percent  int
	settings string
	plugin   string // is disabled; empty for none
}

// contestantOf takes a name apart.
func contestantOf(name string) (contestant, error) {
	rest, plugin := report.SplitAblation(name)
	base, after, given := strings.Cut(rest, "@")
	c := contestant{base: base, plugin: plugin}
	percent, err := strconv.Atoi(after)
	switch {
	case given && after == "":
		return c, fmt.Errorf("scheduler %q: after @ comes percentageOfNodesToScore, or the file of a configuration", name)
	case given && err != nil:
		c.settings = after
	case given && (percent < 1 || percent > 100):
		return c, fmt.Errorf("scheduler %q: percentageOfNodesToScore is 1 to 100", name)
	case given:
		c.percent = percent
	}
	if (base == report.Null || base == report.CreateOnly) && c != (contestant{base: base}) {
		return c, fmt.Errorf("scheduler %q: %s scores no nodes and has neither settings nor plugins", name, base)
	}
	return c, nil
}

// readSettings reads the files that names of schedulers end with. In reports a file has its name without directory
// and ending, so that a report can be gone on with from elsewhere.
func (o *Options) readSettings() error {
	o.settings = map[string]string{}
	for i, name := range o.Schedulers {
		c, err := contestantOf(name)
		if err != nil {
			return err
		}
		if c.settings == "" {
			continue
		}
		text, err := os.ReadFile(c.settings)
		if err != nil {
			return fmt.Errorf("scheduler %q: %w", name, err)
		}
		short := strings.TrimSuffix(filepath.Base(c.settings), filepath.Ext(c.settings))
		if again, err := contestantOf(c.base + "@" + short); err != nil || again.settings != short {
			return fmt.Errorf("scheduler %q: a file cannot have the name of a percentage, or none", name)
		}
		if before, known := o.settings[short]; known && before != string(text) {
			return fmt.Errorf("scheduler %q: another file is called %s, too", name, short)
		}
		o.settings[short] = string(text)
		o.Schedulers[i] = strings.Replace(name, "@"+c.settings, "@"+short, 1)
	}
	return nil
}

// settingsOf is the file that a scheduler is started with.
func (o *Options) settingsOf(name, kubeconfig string) (string, error) {
	c, err := contestantOf(name)
	if err != nil {
		return "", err
	}
	theirs := o.Config
	if c.settings != "" {
		if strings.TrimSpace(theirs) != "" {
			return "", fmt.Errorf("scheduler %q: the workload has a configuration for its scheduler, and two are not put together", name)
		}
		theirs = o.settings[c.settings]
	}
	text, err := settingsWith(theirs, kubeconfig, o.QPS, o.Burst, c.percent)
	if err == nil && c.plugin != "" {
		text, err = disable(text, c.plugin)
	}
	if err != nil {
		return text, err
	}
	return o.Set.in(text)
}

// fileName is a name of a scheduler that a file can have.
func fileName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, string(filepath.Separator)), string(filepath.Separator), "_")
}

// disable takes a plugin out of all profiles of a configuration; one that has none gets the default one.
func disable(config, plugin string) (string, error) {
	var c map[string]any // field -> value
	if err := yaml.Unmarshal([]byte(config), &c); err != nil {
		return "", err
	}
	profiles, _ := c["profiles"].([]any)
	if len(profiles) == 0 {
		profiles = []any{map[string]any{"schedulerName": "default-scheduler"}}
	}
	for _, p := range profiles {
		profile, ok := p.(map[string]any)
		if !ok {
			return "", fmt.Errorf("a profile of the configuration is %v", p)
		}
		multiPoint := under(under(profile, "plugins"), "multiPoint")
		disabled, _ := multiPoint["disabled"].([]any)
		multiPoint["disabled"] = append(disabled, map[string]any{"name": plugin})
	}
	c["profiles"] = profiles
	text, err := yaml.Marshal(c)
	return string(text), err
}

// under is a mapping in a field of another, made when it is missing.
func under(m map[string]any, field string) map[string]any {
	inner, ok := m[field].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[field] = inner
	}
	return inner
}
