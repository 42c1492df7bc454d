from accounting.base.errors import Undecided as Undecided
from accounting.base.errors import Violated as Violated
from paramsearch.certification.audit import Audit as Audit
from paramsearch.certification.audit import audit as audit
from paramsearch.certification.certify import certify as certify
from paramsearch.comparison import Comparison as Comparison
from paramsearch.comparison import ComparisonRow as ComparisonRow
from paramsearch.comparison import compare as compare
from paramsearch.generation.generate import Generated as Generated
from paramsearch.generation.generate import generate as generate
from paramsearch.generation.generate_real import GeneratedReal as GeneratedReal
from paramsearch.generation.generate_real import RealRequest as RealRequest
from paramsearch.generation.generate_real import generate_real as generate_real
from paramsearch.parameters.assembly import rescaled as rescaled
from paramsearch.parameters.assembly import uncertified as uncertified
from paramsearch.parameters.claim import Claim as Claim
from paramsearch.parameters.documents import read as read
from paramsearch.parameters.parameter_file import ParameterFile as ParameterFile
from paramsearch.parameters.parameter_file import load as load
from paramsearch.parameters.parameter_file import save as save
from paramsearch.request import Request as Request
from paramsearch.tables.lookup import Found as Found
from paramsearch.tables.lookup import Query as Query
from paramsearch.tables.lookup import Table as Table

__version__: str
