"""A Django application with Django REST framework; prints the OpenAPI document of drf-spectacular."""

import json

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="tests",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework", "drf_spectacular"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    ROOT_URLCONF=__name__,
    REST_FRAMEWORK={
        "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
        "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
        "PAGE_SIZE": 20,
    },
    SPECTACULAR_SETTINGS={"TITLE": "Shop", "VERSION": "1.0.0", "COMPONENT_SPLIT_REQUEST": True},
)
django.setup()

from django.db import models  # noqa: E402
from django.urls import include, path  # noqa: E402
from drf_spectacular.generators import SchemaGenerator  # noqa: E402
from drf_spectacular.renderers import OpenApiJsonRenderer  # noqa: E402
from rest_framework import parsers, routers, serializers, viewsets  # noqa: E402


class Customer(models.Model):
    name = models.CharField(max_length=80)
    email = models.EmailField(unique=True)
    site = models.URLField(blank=True)

    class Meta:
        app_label = "shop"


class Order(models.Model):
    class Status(models.TextChoices):
        OPEN = "open"
        PAID = "paid"

    number = models.UUIDField(unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.OPEN)
    total = models.DecimalField(max_digits=10, decimal_places=2)
    placed = models.DateTimeField(auto_now_add=True)
    due = models.DateField(null=True)

    class Meta:
        app_label = "shop"


class CustomerSerializer(serializers.ModelSerializer):
    class Meta:
        model = Customer
        fields = "__all__"


class LineSerializer(serializers.Serializer):
    article = serializers.SlugField()
    count = serializers.IntegerField(min_value=1)
    options = serializers.DictField(child=serializers.CharField(), required=False)


class OrderSerializer(serializers.ModelSerializer):
    lines = LineSerializer(many=True)
    buyer = CustomerSerializer(source="customer", read_only=True)

    class Meta:
        model = Order
        fields = ["id", "number", "customer", "buyer", "status", "total", "placed", "due", "lines"]


class InvoiceSerializer(serializers.Serializer):
    order = serializers.IntegerField()
    scan = serializers.FileField()
    note = serializers.CharField(required=False, allow_null=True)


class Customers(viewsets.ModelViewSet):
    queryset = Customer.objects.order_by("id")
    serializer_class = CustomerSerializer


class Orders(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("id")
    serializer_class = OrderSerializer
    lookup_field = "number"
    parser_classes = [parsers.JSONParser]


class Invoices(viewsets.ViewSet):
    serializer_class = InvoiceSerializer
    parser_classes = [parsers.MultiPartParser]

    def create(self, request): ...


router = routers.DefaultRouter()
router.register("customers", Customers)
router.register("orders", Orders)
router.register("invoices", Invoices, basename="invoice")
urlpatterns = [path("api/", include(router.urls))]

document = SchemaGenerator().get_schema(request=None, public=True)
print(json.dumps(json.loads(OpenApiJsonRenderer().render(document)), indent=1))
