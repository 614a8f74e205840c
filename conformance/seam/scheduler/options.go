// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"
)

// settings are what options set.
type settings struct {
	rest     *restclient.Config
	registry frameworkruntime.Registry
	profiles []schedulerapi.KubeSchedulerProfile // nil for the default one
	config   schedulerapi.KubeSchedulerConfiguration
	timeout  time.Duration // of unschedulable pods
	absent   []string      // options that have no counterpart
	// noBackoff is set by options of zero seconds.
	noBackoff bool
}

// Option configures a Scheduler.
type Option func(*settings)

// defaults returns the settings without options.
func defaults() (*settings, error) {
	var wire configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&wire)
	s := &settings{timeout: 5 * time.Minute}
	err := scheme.Scheme.Convert(&wire, &s.config, nil)
	s.config.LeaderElection.LeaderElect = false
	return s, err
}

// file returns the settings as a configuration file.
func (s *settings) file() ([]byte, error) {
	if s.profiles != nil {
		s.config.Profiles = s.profiles
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion)
	return runtime.Encode(encoder, &s.config)
}

// WithComponentConfigVersion has no effect: a configuration is always read as v1.
func WithComponentConfigVersion(string) Option { return func(*settings) {} }

// WithKubeConfig sets how the API server is reached.
func WithKubeConfig(cfg *restclient.Config) Option { return func(s *settings) { s.rest = cfg } }

// WithProfiles sets the profiles.
func WithProfiles(p ...schedulerapi.KubeSchedulerProfile) Option {
	return func(s *settings) { s.profiles = p }
}

// WithParallelism has no effect on decisions.
func WithParallelism(threads int32) Option {
	return func(s *settings) { s.config.Parallelism = threads }
}

// WithPercentageOfNodesToScore sets the share of nodes that are scored.
func WithPercentageOfNodesToScore(share *int32) Option {
	return func(s *settings) { s.config.PercentageOfNodesToScore = share }
}

// WithFrameworkOutOfTreeRegistry adds plugins.
func WithFrameworkOutOfTreeRegistry(registry frameworkruntime.Registry) Option {
	return func(s *settings) { s.registry = registry }
}

// WithPodInitialBackoffSeconds sets the first backoff.
func WithPodInitialBackoffSeconds(seconds int64) Option {
	return func(s *settings) {
		if s.noBackoff = seconds == 0; !s.noBackoff {
			s.config.PodInitialBackoffSeconds = seconds
		}
	}
}

// WithPodMaxBackoffSeconds sets the longest backoff.
func WithPodMaxBackoffSeconds(seconds int64) Option {
	return func(s *settings) {
		if s.noBackoff = seconds == 0; !s.noBackoff {
			s.config.PodMaxBackoffSeconds = seconds
		}
	}
}

// WithPodMaxInUnschedulablePodsDuration sets how long a rejected pod waits for an event.
func WithPodMaxInUnschedulablePodsDuration(d time.Duration) Option {
	return func(s *settings) { s.timeout = d }
}

// WithExtenders sets the extenders.
func WithExtenders(e ...schedulerapi.Extender) Option {
	return func(s *settings) { s.config.Extenders = e }
}

// WithClock is absent: kumiki's loop follows the clock of the process.
func WithClock(clock.WithTicker) Option {
	return func(s *settings) { s.absent = append(s.absent, "WithClock") }
}

// FrameworkCapturer receives the profile of a framework.
type FrameworkCapturer func(schedulerapi.KubeSchedulerProfile)

// WithBuildFrameworkCapturer is absent: there is no framework of upstream's.
func WithBuildFrameworkCapturer(FrameworkCapturer) Option {
	return func(s *settings) { s.absent = append(s.absent, "WithBuildFrameworkCapturer") }
}

// WithNodeInfoSnapshot is absent: nodes are kumiki's.
func WithNodeInfoSnapshot(*internalcache.Snapshot) Option {
	return func(s *settings) { s.absent = append(s.absent, "WithNodeInfoSnapshot") }
}
