{{- define "dualgauge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "dualgauge.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 57 | trimSuffix "-" }}
{{- else if contains (include "dualgauge.name" .) .Release.Name }}
{{- .Release.Name | trunc 57 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "dualgauge.name" .) | trunc 57 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "dualgauge.selector" -}}
app.kubernetes.io/name: {{ include "dualgauge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: proxy
{{- end }}

{{- define "dualgauge.labels" -}}
{{ include "dualgauge.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "dualgauge.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* The ConfigMaps: what a restart reads, and the flags, which are read again while the pods run. */}}
{{- define "dualgauge.config" -}}
{{- default (include "dualgauge.fullname" .) .Values.config.existing }}
{{- end }}

{{- define "dualgauge.flags" -}}
{{- default (printf "%s-flags" (include "dualgauge.fullname" .)) .Values.config.existing }}
{{- end }}

{{/* Replicas that do not share their flags would each give a caller another answer. */}}
{{- define "dualgauge.validate" -}}
{{- $many := or (gt (int .Values.replicaCount) 1) .Values.autoscaling.enabled }}
{{- if and $many (not .Values.store.url) }}
{{- fail "more than one replica needs a store that they share: set store.url, or replicaCount=1 without autoscaling" }}
{{- end }}
{{- if and .Values.state.existingClaim .Values.store.url }}
{{- fail "state.existingClaim is for one replica without a store: unset one of state.existingClaim and store.url" }}
{{- end }}
{{- end }}
