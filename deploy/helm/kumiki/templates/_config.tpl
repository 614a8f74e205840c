{{- /* The KubeSchedulerConfiguration. */ -}}

{{- /* Profiles as a YAML list: those of the values, or the default of the mode, with the gangs that are enabled. */ -}}
{{- define "kumiki.profiles" -}}
{{- $names := index (dict
  "canary" (list "kumiki") "replace" (list "default-scheduler" "kumiki") "shadow" (list .Values.shadow.follow)) .Values.mode -}}
{{- $profiles := deepCopy .Values.profiles -}}
{{- if not $profiles -}}
{{- range $names }}{{ $profiles = append $profiles (dict "schedulerName" .) }}{{ end -}}
{{- end -}}
{{- $gangs := include "kumiki.gangs" . | fromYaml -}}
{{- if $gangs -}}
{{- /* The setting applies to all profiles; it is written into each of them, so that the order does not matter. */ -}}
{{- range $profile := $profiles -}}
{{- $found := dict "args" nil -}}
{{- range $plugin := $profile.pluginConfig }}{{ if eq $plugin.name "Kumiki" }}{{ $_ := set $found "args" $plugin }}{{ end }}{{ end -}}
{{- if $found.args -}}
{{- $_ := set $found.args "args" (merge (dict "gangs" $gangs) ($found.args.args | default dict)) -}}
{{- else -}}
{{- $all := append ($profile.pluginConfig | default list) (dict "name" "Kumiki" "args" (dict "gangs" $gangs)) -}}
{{- $_ := set $profile "pluginConfig" $all -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $profiles -}}
{{- end }}

{{- /* The declarations of gangs that are enabled, in the form of the configuration file. */ -}}
{{- define "kumiki.gangs" -}}
{{- $on := dict -}}
{{- range $source, $value := .Values.gangs -}}
{{- if eq $source "hold" }}{{ $_ := set $on $source $value -}}
{{- else if eq $source "pfnetPrefix" }}{{ with $value }}{{ $_ := set $on "pfnet" (dict "prefix" .) }}{{ end -}}
{{- else if and $value (eq $source "pfnet") }}{{ $_ := set $on $source (index $on $source | default dict) -}}
{{- else if $value }}{{ $_ := set $on $source "On" }}{{ end -}}
{{- end -}}
{{- toYaml $on -}}
{{- end }}

{{- define "kumiki.config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{- if ne .Values.mode "shadow" }}
leaderElection:
  leaderElect: true
  resourceNamespace: kube-system
  resourceName: {{ include "kumiki.lease" . }}
{{- end }}
profiles:
{{ include "kumiki.profiles" . }}
{{- with .Values.configuration }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The name ends in a hash of the content: a new configuration rolls the pods. */ -}}
{{- define "kumiki.configName" -}}
{{ include "kumiki.fullname" . }}-config-{{ include "kumiki.config" . | sha256sum | trunc 10 }}
{{- end }}
